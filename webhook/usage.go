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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// UsagePath is where the deletion of what shows that a managed resource uses a ProviderConfig is sent.
const UsagePath = "/validate-usage"

// Usages keeps that until the provider is done with the managed resource.
type Usages struct {
	// Live reads managed resources from the API server.
	Live client.Reader
}

// Handle answers one admission request.
func (s *Usages) Handle(ctx context.Context, req admission.Request) admission.Response {
	usage := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.OldObject.Raw, &usage.Object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("cannot read %s %q: %w", req.Kind.Kind, req.Name, err))
	}

	ref, ok := resource.ParentOf(usage)
	if req.Operation != admissionv1.Delete || !ok {
		return admission.Allowed("")
	}

	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(ref.GroupVersionKind())

	err := s.Live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, owner)

	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err): // It is gone, or not ours.
		return admission.Allowed("")
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err))
	case ref.Is(owner) && managed.NeedsProvider(owner):
		return admission.Denied(fmt.Sprintf("the provider of %s %s needs it until it is done", ref.Kind, ref.Name))
	default:
		return admission.Allowed("")
	}
}
