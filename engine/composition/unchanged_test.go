// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// applied has a live object become what applying an object makes of it, as its XR's manager: lists are
// applied as a whole. What Crossplane adds is added first.
func applied(live, xr, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out, add := live.DeepCopy(), desired.DeepCopy()

	for _, part := range []string{"labels", "annotations"} {
		key := map[string]string{"labels": "crossplane.io/composite", "annotations": "crossplane.io/composition-resource-name"}[part]
		if v, ok := resource.Value(live.Object, "metadata", part, key); ok {
			_ = unstructured.SetNestedField(add.Object, v, "metadata", part, key)
		}
	}

	var entry map[string]any

	list := resource.List(out.Object, "metadata", "managedFields")
	for _, e := range list {
		if m, _ := e.(map[string]any); resource.String(m, "manager") == managedfields.ManagerOf(xr) {
			entry = m
		}
	}

	drop(out.Object, add.Object, resource.Map(entry, "fieldsV1"))
	put(out.Object, add.Object)

	fields := fieldsOf(add.Object)
	delete(fields, "f:apiVersion")
	delete(fields, "f:kind")

	if entry != nil {
		entry["fieldsV1"] = fields
	}

	return out
}

// drop takes away what was applied and is not any more.
func drop(live, add, was map[string]any) {
	for name, below := range was {
		key := name[len("f:"):]
		next, _ := add[key].(map[string]any)
		under, _ := below.(map[string]any)
		m, isMap := live[key].(map[string]any)

		switch _, stays := add[key]; {
		case isMap && len(under) > 0:
			drop(m, next, under)
		case !stays:
			delete(live, key)
		}
	}
}

func put(live, add map[string]any) {
	for key, v := range add {
		m, isMap := v.(map[string]any)
		have, both := live[key].(map[string]any)

		if isMap && both {
			put(have, m)
		} else {
			live[key] = v
		}
	}
}

func fieldsOf(v any) map[string]any {
	out := map[string]any{}

	m, _ := v.(map[string]any)
	for key, e := range m {
		out["f:"+key] = fieldsOf(e)
	}

	return out
}

// disown has somebody else apply a field of spec.forProvider as a whole, as the API server does where somebody
// edits a map that is atomic.
func disown(live map[string]any, field string) {
	list := resource.List(live, "metadata", "managedFields")

	for _, e := range list {
		m, _ := e.(map[string]any)
		delete(resource.Map(m, "fieldsV1", "f:spec", "f:forProvider"), "f:"+field)
	}

	resource.Map(live, "metadata")["managedFields"] = append(list, map[string]any{
		"manager": "kubectl-edit", "operation": "Update",
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:forProvider": map[string]any{"f:" + field: map[string]any{}}}},
	})
}

// edits are what happens to a wish, and to what is stored, at random.
func edits() map[string]func(t *rapid.T, live, wished map[string]any) {
	fields := rapid.SampledFrom([]string{"instanceClass", "engine", "zone", "tags", "options", "size"})
	values := rapid.SampledFrom([]any{
		"small", "large", "", int64(0), int64(5), true, nil,
		map[string]any{},
		map[string]any{"a": "b"},
		map[string]any{"a": "b", "c": map[string]any{}},
		[]any{},
		[]any{"x", "y"},
		[]any{"y", "x"},
		[]any{map[string]any{"name": "a", "value": "b"}},
		[]any{map[string]any{"name": "z"}, map[string]any{"name": "a"}},
	})
	spec := func(obj map[string]any) map[string]any { return resource.Map(obj, "spec", "forProvider") }
	copied := func(v any) any {
		return (&unstructured.Unstructured{Object: map[string]any{"v": v}}).DeepCopy().Object["v"]
	}

	return map[string]func(t *rapid.T, live, wished map[string]any){
		"nothing": func(*rapid.T, map[string]any, map[string]any) {},
		"wish": func(t *rapid.T, _, wished map[string]any) {
			spec(wished)[fields.Draw(t, "field")] = copied(values.Draw(t, "value"))
		},
		"wish no more": func(t *rapid.T, _, wished map[string]any) { delete(spec(wished), fields.Draw(t, "field")) },
		"drift": func(t *rapid.T, live, _ map[string]any) {
			spec(live)[fields.Draw(t, "field")] = copied(values.Draw(t, "value"))
		},
		"take away": func(t *rapid.T, live, _ map[string]any) { delete(spec(live), fields.Draw(t, "field")) },
		"label": func(t *rapid.T, live, wished map[string]any) {
			key := rapid.SampledFrom([]string{"team", "crossplane.io/composite", "other"}).Draw(t, "label")
			_ = unstructured.SetNestedField(rapid.SampledFrom([]map[string]any{live, wished}).Draw(t, "of"), "b", "metadata", "labels", key)
		},
		"our annotation": func(t *rapid.T, live, _ map[string]any) {
			key := rapid.SampledFrom([]string{v1alpha1.AnnotationWish, v1alpha1.AnnotationTrace, v1alpha1.AnnotationDesiredPolicies}).Draw(t, "annotation")
			unstructured.RemoveNestedField(live, "metadata", "annotations", key)
		},
		"take over": func(t *rapid.T, live, _ map[string]any) {
			field := fields.Draw(t, "field")
			if m, ok := spec(live)[field].(map[string]any); ok {
				m["theirs"] = "d"
				disown(live, field)
			}
		},
		"gate": func(t *rapid.T, live, _ map[string]any) {
			_ = unstructured.SetNestedStringSlice(live, rapid.SampledFrom([][]string{{"*"}, {"Observe", "LateInitialize"}}).Draw(t, "policies"), "spec", "managementPolicies")
		},
		"wished gate": func(t *rapid.T, _, wished map[string]any) {
			_ = unstructured.SetNestedStringSlice(wished, rapid.SampledFrom([][]string{{"*"}, {"Observe"}}).Draw(t, "policies"), "spec", "managementPolicies")
		},
	}
}

func TestWhatIsUnchangedIsAnsweredAsIfItWereCompared(t *testing.T) {
	found, other := 0, 0

	rapid.Check(t, func(rt *rapid.T) {
		req := requestFor(t, allowing("spec.forProvider", "Update"), observedRDS, desiredRDS)
		kinds := edits()
		names := rapid.SampledFrom([]string{
			"nothing", "nothing", "nothing", "wish", "wish no more", "drift", "take away", "take over", "label", "our annotation", "gate", "wished gate",
		})

		for range rapid.IntRange(2, 12).Draw(rt, "steps") {
			req.Mode = rapid.SampledFrom([]v1alpha1.Mode{v1alpha1.ModeHold, v1alpha1.ModeHold, v1alpha1.ModeAudit}).Draw(rt, "mode")
			req.Observed, req.Desired = req.Observed.DeepCopy(), req.Desired.DeepCopy()
			kinds[names.Draw(rt, "edit")](rt, req.Observed.Object, req.Desired.Object)

			want := composition.Compared(req)

			if got, ok := composition.Unchanged(req); ok {
				found++

				if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
					rt.Fatalf("-compared, +unchanged:\n%s\nobserved: %v\ndesired: %v", diff, req.Observed, req.Desired)
				}
			} else {
				other++
			}

			req.Observed = applied(req.Observed, req.XR, composition.Decide(req).Desired)
		}
	})

	if found < other/4 {
		t.Errorf("%d of %d were found to be unchanged: it checks nothing", found, found+other)
	}

	t.Logf("%d of %d were found to be unchanged", found, found+other)
}

func TestTheUsualWishIsFoundToBeUnchanged(t *testing.T) {
	req := requestFor(t, allowing("spec.forProvider", "Update"), observedRDS, desiredRDS)

	for i := range 3 {
		if _, ok := composition.Unchanged(req); ok != (i > 0) {
			t.Errorf("run %d: unchanged is %v", i, ok)
		}

		req.Observed = applied(req.Observed, req.XR, composition.Decide(req).Desired)
	}

	before := maps.Clone(req.Observed.Object)

	composition.Unchanged(req)

	if diff := cmp.Diff(before, req.Observed.Object); diff != "" {
		t.Errorf("what is observed changes:\n%s", diff)
	}
}
