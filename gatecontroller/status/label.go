// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Label keeps the labels on policies and windows by which functions ask for
// those that matter to them.
func (s *Reporter) Label(ctx context.Context, policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) error {
	errs := make([]error, 0, len(policies)+len(windows))

	for i := range policies {
		errs = append(errs, s.labelOne(ctx, &policies[i], policy.LabelsOfKind(policies[i].Spec.Match.Kind)))
	}

	for i := range windows {
		errs = append(errs, s.labelOne(ctx, &windows[i], policy.LabelsOfServiceAccount(windows[i].Spec.ServiceAccount)))
	}

	return errors.Join(errs...)
}

func (s *Reporter) labelOne(ctx context.Context, obj client.Object, labels map[string]string) error {
	have := obj.GetLabels()
	missing := map[string]string{}

	for key, value := range labels {
		if have[key] != value {
			missing[key] = value
		}
	}

	if len(missing) == 0 {
		return nil
	}

	raw, err := json.Marshal(map[string]any{object.KeyMetadata: map[string]any{"labels": missing}})
	if err != nil {
		return fmt.Errorf("cannot encode labels of %q: %w", obj.GetName(), err)
	}

	err = s.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(object.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot label %T %q: %w", obj, obj.GetName(), err)
	}

	return nil
}
