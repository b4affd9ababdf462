// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// annotationWish is where the function notes what was wished.
const annotationWish = "kausality.io/wish"

// fewestForFunction is how many scenarios a function can be asked at least.
const fewestForFunction = 120

// TestTheFunctionDecidesAsTheCorpusSays puts to RunFunction every scenario that
// Crossplane can put to a function: it composes a resource of an XR. What comes
// of it must be what the engine decides.
func TestTheFunctionDecidesAsTheCorpusSays(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	asked := 0

	for _, s := range all {
		if !composes(s) {
			continue
		}

		asked++

		t.Run(s.Name, func(t *testing.T) {
			req, _ := s.Decision()
			req.ParentSettles, req.Action = true, v1alpha1.ActionHold
			req.Basis.Bindings = nil // A function reads none.
			want := decision.Decide(req)

			f := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return req.Basis.Now }))

			rsp, err := f.RunFunction(t.Context(), composing(t, s))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(rsp, runOf(t, f, composing(t, s)), protocmp.Transform()); diff != "" {
				t.Errorf("-first, +again:\n%s", diff)
			}

			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					t.Fatal(r.GetMessage())
				}
			}

			got := rsp.GetDesired().GetResources()["resource"]
			checkDesired(t, req, want, got)
			checkHeld(t, want, rsp)
		})
	}

	if asked < fewestForFunction {
		t.Errorf("%d scenarios were put to the function, want at least %d", asked, fewestForFunction)
	}
}

// composes reports whether a scenario is one of a function: Crossplane writes a
// composed resource of an XR that is there, and nothing but what a Composition
// can say.
func composes(s corpus.Scenario) bool {
	r := s.Request
	if r == nil || s.Parent == nil || s.Parent.GetKind() != "XDatabase" || resource.Deleting(s.Parent) {
		return false
	}

	if r.User != nil && r.User.Name != corpus.Crossplane || r.Action != "" && r.Action != v1alpha1.ActionHold {
		return false
	}

	if s.Old != nil && s.New != nil {
		return sameMetadata(s.Old, s.New)
	}

	return true
}

// sameMetadata reports whether only what is beside metadata changes: of the rest
// Crossplane writes most itself.
func sameMetadata(old, obj *unstructured.Unstructured) bool {
	return cmp.Equal(old.Object["metadata"], obj.Object["metadata"])
}

// composing is the scenario as Crossplane's request.
func composing(t *testing.T, s corpus.Scenario) *fnv1.RunFunctionRequest {
	t.Helper()

	req := &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: s.Name},
		Observed: &fnv1.State{Composite: toResource(t, s.Parent.Object), Resources: map[string]*fnv1.Resource{}},
		Desired:  &fnv1.State{Resources: map[string]*fnv1.Resource{}},
		RequiredResources: map[string]*fnv1.Resources{
			"kausality.io/allowancepolicies": items(t, s.Policies), "kausality.io/upgradeallowances": items(t, s.Upgrades),
			"kausality.io/enforcements": items(t, s.Enforcements), "kausality.io/namespace": {},
		},
	}

	if s.Namespace != nil {
		req.RequiredResources["kausality.io/namespace"].Items = []*fnv1.Resource{toResource(t, s.Namespace.Object)}
	}

	if s.Old != nil {
		req.Observed.Resources["resource"] = toResource(t, recorded(t, s, stored(t, s.Old, managerOf(s.Parent))).Object)
	}

	if s.Old != nil && management.Audited(s.Old) {
		req.Input = toResource(t, map[string]any{
			"apiVersion": "kausality.io/v1alpha1", "kind": "Input", "mode": string(v1alpha1.ModeAudit),
		}).GetResource()
	}

	if s.New != nil {
		req.Desired.Resources["resource"] = toResource(t, desired(s.New))
	}

	if len(s.Params) > 0 {
		giveParams(t, req, s)
	}

	return req
}

// giveParams does as the manager, which says of which kinds the function may ask for
// parameters, and as Crossplane, which sends those that it asks for.
func giveParams(t *testing.T, req *fnv1.RunFunctionRequest, s corpus.Scenario) {
	t.Helper()

	for i := range s.Policies {
		p := &s.Policies[i]
		if k := p.Spec.ParamKind; k != nil && !slices.Contains(s.Request.Unreadable, k.Kind) {
			p.Status.ParamScope = scopeOf(s, k.Kind)
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionParametersReadable, Status: metav1.ConditionTrue}}
		}
	}

	req.RequiredResources["kausality.io/allowancepolicies"] = items(t, s.Policies)
	req.Meta.Capabilities = append(req.GetMeta().GetCapabilities(),
		fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES)

	rsp, err := fn.New(logging.NewNopLogger()).RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}

	for key, asked := range rsp.GetRequirements().GetResources() {
		if !strings.HasPrefix(key, "kausality.io/params/") {
			continue
		}

		found := &fnv1.Resources{}

		for _, u := range s.Params {
			if u.GetKind() == asked.GetKind() && u.GetName() == asked.GetMatchName() && u.GetNamespace() == asked.GetNamespace() {
				found.Items = append(found.Items, toResource(t, u.Object))
			}
		}

		req.RequiredResources[key] = found
	}
}

// scopeOf is the scope of a kind of parameters: Cluster where those of it are in no namespace.
func scopeOf(s corpus.Scenario, kind string) v1alpha1.ParamScope {
	if slices.ContainsFunc(s.Params, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetNamespace() == "" }) {
		return v1alpha1.ParamScopeCluster
	}

	return v1alpha1.ParamScopeNamespaced
}

// recorded is an observed resource with what the function noted when it composed
// it.
func recorded(t *testing.T, s corpus.Scenario, observed *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()

	xr := s.Parent.DeepCopy()
	xr.SetAnnotations(nil)
	delete(xr.Object, "status")
	unstructured.RemoveNestedField(xr.Object, "spec", "resourceRefs") // It is about to compose something.

	rsp, err := fn.New(logging.NewNopLogger()).RunFunction(t.Context(), &fnv1.RunFunctionRequest{
		Observed: &fnv1.State{Composite: toResource(t, xr.Object)},
		Desired:  &fnv1.State{Resources: map[string]*fnv1.Resource{"resource": toResource(t, desired(s.Old))}},
	})
	if err != nil {
		t.Fatal(err)
	}

	composed := &unstructured.Unstructured{Object: rsp.GetDesired().GetResources()["resource"].GetResource().AsMap()}
	if wish := resource.Annotation(composed, annotationWish); wish != "" {
		annotations := observed.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[annotationWish] = wish
		observed.SetAnnotations(annotations)
	}

	return observed
}

// desired is what a Composition says of an object.
func desired(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}

	for key, v := range u.Object {
		if key != "status" && key != "metadata" {
			out[key] = v
		}
	}

	meta := map[string]any{}
	if l := u.GetLabels(); len(l) > 0 {
		meta["labels"] = resource.Map(u.Object, "metadata", "labels")
	}

	if n := u.GetName(); n != "" {
		meta["name"] = n
	}

	out["metadata"] = meta

	// The gate's field is what the gate has made of what the Composition asked for.
	if desired, err := management.ParseDesired(u); err == nil && desired.Policies != nil && out["spec"] != nil {
		spec := maps.Clone(resource.Map(out, "spec"))
		spec["managementPolicies"] = resource.Values(desired.Policies)
		out["spec"] = spec
	}

	return out
}

func toResource(tb testing.TB, obj map[string]any) *fnv1.Resource {
	tb.Helper()

	raw, err := json.Marshal(obj)
	if err != nil {
		tb.Fatal(err)
	}

	st := &structpb.Struct{}
	if err := st.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}

	return &fnv1.Resource{Resource: st}
}

func items[T any](t *testing.T, list []T) *fnv1.Resources {
	t.Helper()

	out := &fnv1.Resources{}

	for i := range list {
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			t.Fatal(err)
		}

		out.Items = append(out.GetItems(), toResource(t, obj))
	}

	return out
}

// checkDesired checks that a resource is desired as it was decided.
func checkDesired(t *testing.T, req request.Request, want decision.Decision, got *fnv1.Resource) {
	t.Helper()

	switch {
	case req.Old == nil:
		if (got != nil) != want.Allowed() {
			t.Fatalf("created: %v, allowed: %v", got != nil, want.Allowed())
		}
	case req.New == nil:
		kept := !want.Allowed() || resource.IsManaged(req.Old) && !gate.MayDelete(req.Old)
		if (got != nil) != kept {
			t.Fatalf("kept: %v, want %v", got != nil, kept)
		}
	}

	if got == nil {
		return
	}

	u := &unstructured.Unstructured{Object: got.GetResource().AsMap()}
	decided := want.Object

	if decided == nil { // Nothing is granted: it stays as it is.
		decided = req.Old
	}

	for _, key := range []string{v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace, v1alpha1.AnnotationLastUpgrade} {
		if diff := cmp.Diff(resource.Annotation(decided, key), resource.Annotation(u, key)); diff != "" {
			t.Errorf("annotation %s, -decided, +desired:\n%s", key, diff)
		}
	}

	if req.Old != nil && req.New != nil {
		if diff := cmp.Diff(fixture.Decoded(withoutPolicies(decided)), fixture.Decoded(withoutPolicies(u))); diff != "" {
			t.Errorf("spec, -decided, +desired:\n%s", diff)
		}
	}
}

// withoutPolicies is an object's spec less the gate's field, as it is stored.
func withoutPolicies(u *unstructured.Unstructured) map[string]any {
	spec := resource.Map(u.DeepCopy().Object, "spec")
	delete(spec, "managementPolicies")
	fill(spec)

	return spec
}

// checkHeld checks that the conditions show what is held.
func checkHeld(t *testing.T, want decision.Decision, rsp *fnv1.RunFunctionResponse) {
	t.Helper()

	unallowed := slices.DeleteFunc(slices.Clone(want.Findings), func(f finding.Finding) bool { return f.Verdict != finding.Unallowed })
	text, state := rsp.GetConditions()[0].GetMessage(), v1alpha1.State{}

	if err := json.Unmarshal([]byte(rsp.GetConditions()[1].GetMessage()), &state); err != nil {
		t.Fatal(err)
	}

	if listed := len(state.Changes) + len(state.Passed) + state.More + state.PassedMore; (listed > 0) != (len(unallowed) > 0) {
		t.Errorf("condition %q: %d listed, want %d held", text, listed, len(unallowed))
	}

	if utf8.RuneCountInString(text) > message.Most || len(unallowed) > 0 && !strings.Contains(text, " held") {
		t.Errorf("condition %q", text)
	}

	says := func(h v1alpha1.HeldChange) bool { return h.Missing == change.Text(unallowed[0].Missing(), 1024) }
	if len(unallowed) > 0 && !slices.ContainsFunc(slices.Concat(state.Changes, state.Passed), says) {
		t.Errorf("state %+v does not say %q", state, unallowed[0].Missing())
	}
}
