// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"fmt"
	"maps"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Keys of the resources the function asks for.
const (
	keyPolicies = "kausality.io/allowancepolicies"
	keyUpgrades = "kausality.io/upgradeallowances"
)

// requirePolicies asks Crossplane for the policies and windows. One that may be
// too old for the present field is asked in the one before it, too.
func requirePolicies(rsp *fnv1.RunFunctionResponse, labels map[string]string, old bool) {
	if rsp.GetRequirements() == nil {
		rsp.Requirements = &fnv1.Requirements{}
	}

	want := map[string]*fnv1.ResourceSelector{
		keyPolicies: selectorFor("AllowancePolicy", labels),
		keyUpgrades: selectorFor("UpgradeAllowance", labels),
	}

	if rsp.GetRequirements().GetResources() == nil {
		rsp.Requirements.Resources = map[string]*fnv1.ResourceSelector{}
	}

	maps.Copy(rsp.GetRequirements().GetResources(), want)

	if old {
		rsp.Requirements.ExtraResources = want //nolint:staticcheck // As above.
	}
}

func selectorFor(kind string, labels map[string]string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: v1alpha1.GroupVersion().String(),
		Kind:       kind,
		Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}},
	}
}

// given returns the resources Crossplane sent for a key, as JSON objects.
func given(req *fnv1.RunFunctionRequest, key string) []map[string]any {
	res, ok := req.GetRequiredResources()[key]
	if !ok {
		res = req.GetExtraResources()[key] //nolint:staticcheck // What older versions of Crossplane send.
	}

	out := make([]map[string]any, 0, len(res.GetItems()))
	for _, item := range res.GetItems() {
		out = append(out, item.GetResource().AsMap())
	}

	return out
}

// policies reads AllowancePolicies.
func policies(objects []map[string]any) ([]v1alpha1.AllowancePolicy, []error) {
	return fromObjects[v1alpha1.AllowancePolicy](objects, "AllowancePolicy")
}

// upgrades reads UpgradeAllowances.
func upgrades(objects []map[string]any) ([]v1alpha1.UpgradeAllowance, []error) {
	return fromObjects[v1alpha1.UpgradeAllowance](objects, "UpgradeAllowance")
}

// fromObjects reads objects of one kind; those that cannot be read are left
// out and reported.
func fromObjects[T any](objects []map[string]any, kind string) ([]T, []error) {
	var (
		out []T
		bad []error
	)

	for _, obj := range objects {
		var t T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &t); err != nil {
			bad = append(bad, fmt.Errorf("cannot read %s %q: %w", kind, resource.String(obj, "metadata", "name"), err))

			continue
		}

		out = append(out, t)
	}

	return out, bad
}
