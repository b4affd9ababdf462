// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// ValidatePath is where our own kinds are sent.
const ValidatePath = "/validate"

// Validator refuses AllowancePolicies, AllowanceBindings, UpgradeAllowances and
// Enforcements that could not be used, with the path of each field that is wrong.
type Validator struct{}

// Handle answers one admission request.
func (Validator) Handle(_ context.Context, req admission.Request) admission.Response {
	errs, warnings, err := validate(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}

	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(warnings...)
	}

	gk := schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
	status := apierrors.NewInvalid(gk, req.Name, errs).Status()

	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

func validate(req admission.Request) (errs field.ErrorList, warnings []string, err error) {
	switch req.Kind.Kind {
	case "AllowancePolicy":
		p := &v1alpha1.AllowancePolicy{}
		if err := json.Unmarshal(req.Object.Raw, p); err != nil {
			return nil, nil, fmt.Errorf("cannot read AllowancePolicy %q: %w", req.Name, err)
		}

		_, errs := policy.Compile(p)

		return errs, nil, nil
	case v1alpha1.KindBinding:
		b := &v1alpha1.AllowanceBinding{}
		if err := json.Unmarshal(req.Object.Raw, b); err != nil {
			return nil, nil, fmt.Errorf("cannot read AllowanceBinding %q: %w", req.Name, err)
		}

		_, errs := policy.CompileBinding(b)

		return errs, nil, nil
	case "UpgradeAllowance":
		u := &v1alpha1.UpgradeAllowance{}
		if err := json.Unmarshal(req.Object.Raw, u); err != nil {
			return nil, nil, fmt.Errorf("cannot read UpgradeAllowance %q: %w", req.Name, err)
		}

		return upgradeallowance.Validate(u), upgradeallowance.Warnings(u), nil
	case "Enforcement":
		e := &v1alpha1.Enforcement{}
		if err := json.Unmarshal(req.Object.Raw, e); err != nil {
			return nil, nil, fmt.Errorf("cannot read Enforcement %q: %w", req.Name, err)
		}

		return enforcement.Validate(e), nil, nil
	default:
		return nil, nil, nil
	}
}

var _ admission.Handler = Validator{}
