// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Keys of the resources the function asks for. Those for one kind or service
// account go below them, after a slash.
const (
	keyPolicies = "kausality.io/allowancepolicies"
	keyUpgrades = "kausality.io/upgradeallowances"
	keyEnforced = "kausality.io/enforcements"
	// keyNamespace is the XR's namespace, for policies that select by it.
	keyNamespace = "kausality.io/namespace"
)

// require asks Crossplane for the policies about the kinds that are there, and
// for the windows of who composes. A Crossplane that may be too old for the
// present field is asked in the one before it, which all know, and in no other:
// Crossplane 1.20 stores a field that it does not know as the bytes it came in,
// where the entries of a map are in any order, and compares these to see whether
// the requirements have changed. Source: crossplane v1.20.0,
// internal/controller/apiextensions/composite/extra_resources.go.
func (s *state) require(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	if rsp.GetRequirements() == nil {
		rsp.Requirements = &fnv1.Requirements{}
	}

	want := map[string]*fnv1.ResourceSelector{keyEnforced: selectorFor("Enforcement", nil)}

	for _, kind := range s.kinds() {
		want[keyPolicies+"/"+kind] = s.selectorFor("AllowancePolicy", policy.LabelsOfKind(kind))
	}

	user := policy.LabelsOfServiceAccount(s.input.ServiceAccount)
	want[keyUpgrades+"/"+user[v1alpha1.LabelServiceAccount]] = s.selectorFor("UpgradeAllowance", user)

	// Where no manager labels them, there is one way to find any.
	if unlabelled(req) {
		want[keyPolicies], want[keyUpgrades] = s.selectorFor("AllowancePolicy", nil), s.selectorFor("UpgradeAllowance", nil)
	}

	if s.selectsNamespaces {
		want[keyNamespace] = &fnv1.ResourceSelector{
			ApiVersion: "v1", Kind: "Namespace", Match: &fnv1.ResourceSelector_MatchName{MatchName: s.xr.GetNamespace()},
		}
	}

	s.awaited = awaited(want, sent(req))

	if request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES) {
		rsp.Requirements.Resources = want
	} else {
		rsp.Requirements.ExtraResources = want //nolint:staticcheck // As above.
	}
}

// awaited reports whether something of what is required is still to be sent: Crossplane
// calls again with it. What was sent for a key counts for those below it, too.
func awaited(want map[string]*fnv1.ResourceSelector, sent map[string]*fnv1.Resources) bool {
	for key := range want {
		_, ok := sent[key]
		for above := range sent {
			ok = ok || strings.HasPrefix(key, above+"/")
		}

		if !ok {
			return true
		}
	}

	return false
}

// kinds are the kinds of the XR and of what it composes or is to.
func (s *state) kinds() []string {
	kinds := map[string]bool{s.xr.GetKind(): true}

	for _, objects := range []map[string]*unstructured.Unstructured{s.observed, s.desired} {
		for _, u := range objects {
			kinds[u.GetKind()] = true
		}
	}

	return slices.Sorted(maps.Keys(kinds))
}

// namespaceOf returns the namespace of a name that Crossplane sent; nil if none.
func namespaceOf(req *fnv1.RunFunctionRequest, name string) *unstructured.Unstructured {
	for _, obj := range given(req, keyNamespace, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) {
		if u := (&unstructured.Unstructured{Object: obj}); u.GetName() == name {
			return u
		}
	}

	return nil
}

// unlabelled reports whether Crossplane sent what it was asked for, and there is
// no policy with a label.
func unlabelled(req *fnv1.RunFunctionRequest) bool {
	asked := false

	for key, res := range sent(req) {
		if strings.HasPrefix(key, keyPolicies+"/") {
			if len(res.GetItems()) > 0 {
				return false
			}

			asked = true
		}
	}

	return asked
}

func (s *state) selectorFor(kind string, labels map[string]string) *fnv1.ResourceSelector {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = s.input.PolicySelector
	} else {
		maps.Copy(labels, s.input.PolicySelector)
	}

	return selectorFor(kind, labels)
}

func selectorFor(kind string, labels map[string]string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: v1alpha1.GroupVersion().String(),
		Kind:       kind,
		Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}},
	}
}

// sent are the resources Crossplane sent, in the field it was asked in or in the
// present one, which has what the pipeline's step asks for, too.
func sent(req *fnv1.RunFunctionRequest) map[string]*fnv1.Resources {
	all := map[string]*fnv1.Resources{}
	maps.Copy(all, req.GetExtraResources()) //nolint:staticcheck // What older versions of Crossplane send.
	maps.Copy(all, req.GetRequiredResources())

	return all
}

// answered reports whether Crossplane sent any of what it is asked for, be it
// nothing.
func answered(req *fnv1.RunFunctionRequest) bool {
	for key := range sent(req) {
		if key == keyPolicies || strings.HasPrefix(key, keyPolicies+"/") {
			return true
		}
	}

	return false
}

// given returns the resources of a kind that Crossplane sent for a key and those below
// it, as JSON objects, each once. A requirement of the pipeline's step may have the same
// name, and ask for anything: what says that it is of another kind is left out.
func given(req *fnv1.RunFunctionRequest, key string, gvk schema.GroupVersionKind) []map[string]any {
	all, names := sent(req), map[string]bool{}

	var out []map[string]any

	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k != key && !strings.HasPrefix(k, key+"/") {
			continue
		}

		for _, item := range all[k].GetItems() {
			u := decode(item.GetResource())
			if u.GetAPIVersion() != "" && u.GroupVersionKind() != gvk {
				continue
			}

			if name := u.GetName(); !names[name] {
				names[name] = true

				out = append(out, u.Object)
			}
		}
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

// enforcements reads Enforcements.
func enforcements(objects []map[string]any) ([]v1alpha1.Enforcement, []error) {
	return fromObjects[v1alpha1.Enforcement](objects, "Enforcement")
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
