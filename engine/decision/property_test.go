// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// ground is a request before its policies are compiled.
type ground struct {
	request      request.Request
	policies     []v1alpha1.AllowancePolicy
	enforcements []v1alpha1.Enforcement
}

// with is the request under some policies.
func (g ground) with(tb rapid.TB, policies []v1alpha1.AllowancePolicy) request.Request {
	tb.Helper()

	set, bad := policy.NewCache().Set(policies)
	if len(bad) > 0 {
		tb.Fatal(bad)
	}

	req := g.request
	req.Basis.Policies = set

	for i := range g.enforcements {
		e, errs := enforcement.Compile(&g.enforcements[i])
		if len(errs) > 0 {
			tb.Fatal(errs)
		}

		req.Basis.Enforcements = append(req.Basis.Enforcements, e)
	}

	return req
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// fields are paths in objects of any kind here.
func fields() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"spec", "spec.a", "spec.b", "spec.forProvider", "spec.forProvider.a", "spec.l", "spec.l[*].v", "spec.l[*]",
		"metadata.labels", "metadata.annotations[jira]", "metadata.ownerReferences", "metadata.finalizers", "create", "delete",
	})
}

func kinds() *rapid.Generator[string] { return rapid.SampledFrom([]string{"Parent", "Child", "Other"}) }

func users() *rapid.Generator[policy.User] {
	return rapid.SampledFrom([]policy.User{
		{Name: "hans", Groups: []string{"team"}},
		{Name: "anna"},
		{Name: crossplaneUser},
		{Name: managerUser},
		{Name: providerUser},
		{Name: "system:serviceaccount:kube-system:gc"},
		{},
	})
}

func subjects() *rapid.Generator[[]v1alpha1.Subject] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.Subject {
		s := pick(
			t, "subject",
			v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: "hans"},
			v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: "anna"},
			v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: "team"},
			v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: "crossplane-system", Name: "crossplane"},
		)
		s.MayInitiate = rapid.Bool().Draw(t, "mayInitiate")

		return s
	}), 0, 2)
}

func permissions() *rapid.Generator[[]v1alpha1.Permission] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.Permission {
		if rapid.Bool().Draw(t, "external") {
			return v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: pick(t, "verbs", []string{"Update"}, []string{"Create", "Delete"}, []string{"apply"})}
		}

		return v1alpha1.Permission{
			APIGroup: pick(t, "group", "", "example.org"), Kind: kinds().Draw(t, "kind"),
			Mutations: rapid.SliceOfN(fields(), 1, 2).Draw(t, "mutations"),
		}
	}), 1, 3)
}

func allowancePolicy(t *rapid.T, name string) v1alpha1.AllowancePolicy {
	p := v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec = v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{
			APIGroup: pick(t, "group", "", "example.org", "example.com"), Kind: kinds().Draw(t, "kind"),
			Fields:  rapid.SliceOfN(fields(), 1, 3).Draw(t, "fields"),
			CEL:     pick(t, "cel", nil, nil, []string{"has(object.spec.a)"}, []string{"object.spec.b == 1"}, []string{"object.spec.none == 1"}, []string{"false"}),
			Capture: pick(t, "capture", nil, []string{"metadata.annotations[jira]", "spec.l[*].v"}),
		},
		Subjects: subjects().Draw(t, "subjects"),
		Allow:    permissions().Draw(t, "allow"),
	}

	if rapid.Bool().Draw(t, "selects") {
		p.Spec.Match.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": pick(t, "env", "prod", "dev")}}
	}

	return p
}

// allowancesIn are allowances by the policies there may be.
func allowancesIn(t *rapid.T, generation int64) string {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.Allowance {
		a := v1alpha1.Allowance{
			Generation: generation - int64(rapid.IntRange(0, 1).Draw(t, "age")),
			Initiator:  pick(t, "initiator", "hans", "boss"), Policy: pick(t, "policy", "", "p0", "p1", "gone"),
			Trace: []v1alpha1.Hop{{Kind: "Parent", Name: "parent", Generation: generation, Field: pick(t, "field", "spec.a", "metadata.labels.x", "delete")}},
		}

		if rapid.Bool().Draw(t, "external") {
			a.Relation, a.Mutations = v1alpha1.RelationExternal, []string{pick(t, "verb", "Update", "Delete")}
		} else {
			a.Kind, a.Mutation = "Child", fields().Draw(t, "mutation")
		}

		return fixture.Sourced(a)
	}), 0, 4).Draw(t, "allowances")

	return allowance.FormatList(list)
}

// thing is an object of a kind, whose fields are drawn.
func thing(t *rapid.T, kind string) map[string]any {
	spec := map[string]any{}

	for _, key := range []string{"a", "b"} {
		if v := rapid.SampledFrom([]any{nil, int64(1), "x", map[string]any{"c": int64(1)}}).Draw(t, key); v != nil {
			spec[key] = v
		}
	}

	if rapid.Bool().Draw(t, "list") {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r"}), 0, 3, rapid.ID[string]).Draw(t, "names")
		list := make([]any, 0, len(names))

		for _, name := range names {
			list = append(list, map[string]any{"name": name, "v": int64(rapid.IntRange(0, 1).Draw(t, "v"))})
		}

		spec["l"] = list
	}

	if rapid.Bool().Draw(t, "managed") {
		spec["forProvider"] = map[string]any{"a": int64(rapid.IntRange(0, 1).Draw(t, "provided"))}
		spec["managementPolicies"] = []any{"Observe", "LateInitialize"}
	}

	if rapid.Bool().Draw(t, "bound") {
		spec["claimRef"] = map[string]any{"apiVersion": "example.org/v1", "kind": "Parent", "name": pick(t, "claim", "parent", "parent", "other")}
	}

	annotations := map[string]any{}

	for _, key := range []string{"jira", "other"} {
		if rapid.Bool().Draw(t, key) {
			annotations[key] = pick(t, "value", "1", "2")
		}
	}

	return map[string]any{
		"apiVersion": "example.org/v1", "kind": kind,
		"metadata": map[string]any{
			"name": "child", "generation": int64(7), "annotations": annotations,
			"labels": map[string]any{"env": pick(t, "env", "prod", "dev")},
		},
		"spec": spec,
	}
}

func parent(t *rapid.T, settles bool) *unstructured.Unstructured {
	obj := thing(t, "Parent")
	meta, _ := obj["metadata"].(map[string]any)
	generation := int64(12)
	meta["name"], meta["generation"] = "parent", generation
	meta["annotations"] = map[string]any{v1alpha1.AnnotationAllowances: allowancesIn(t, generation)}

	if rapid.Bool().Draw(t, "deleting") {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}

	ready := map[string]any{
		"type": "Ready", "status": pick(t, "ready", "True", "False"), "observedGeneration": int64(rapid.IntRange(10, 12).Draw(t, "observed")),
	}
	conditions := []any{ready}

	if settles {
		conditions = append(conditions, map[string]any{
			"type": v1alpha1.ConditionState, "status": "True", "message": pick(t, "message", fixture.StateMessage(v1alpha1.PhaseSettled, 11, 0),
				fixture.StateMessage(v1alpha1.PhaseSettled, 12, 0), fixture.StateMessage(v1alpha1.PhaseProgressing, 12, 0)),
		})
	}

	obj["status"] = map[string]any{"conditions": conditions}
	if rapid.Bool().Draw(t, "silent") {
		delete(ready, "observedGeneration")
	}

	return &unstructured.Unstructured{Object: obj}
}

// drawn is any request.
func drawn(t *rapid.T) ground {
	g := ground{request: request.Request{
		Operation: pick(t, "operation", request.OperationCreate, request.OperationUpdate, request.OperationUpdate, request.OperationDelete),
		User:      users().Draw(t, "user"),
		Basis:     request.Basis{Settings: request.Settings{Crossplane: crossplaneUser, Manager: managerUser}, Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)},
		Resource:  schema.GroupResource{Group: "example.org", Resource: "children"},
		Action:    pick[v1alpha1.ValidationAction](t, "action", "", "", v1alpha1.ActionDeny, v1alpha1.ActionHold, v1alpha1.ActionAudit),
	}}

	for i := range rapid.IntRange(0, 3).Draw(t, "policies") {
		g.policies = append(g.policies, allowancePolicy(t, fmt.Sprintf("p%d", i)))
	}

	if g.request.Operation != request.OperationCreate {
		obj := thing(t, "Child")
		meta, _ := obj["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		annotations[v1alpha1.AnnotationAllowances] = allowancesIn(t, 7)
		g.request.Old = &unstructured.Unstructured{Object: obj}
	}

	if g.request.Operation != request.OperationDelete {
		g.request.New = &unstructured.Unstructured{Object: thing(t, "Child")}
	}

	switch rapid.IntRange(0, 3).Draw(t, "parent") {
	case 0:
		g.request.ParentGone = true
	case 1, 2:
		g.request.ParentSettles = rapid.Bool().Draw(t, "settles")
		g.request.Parent = parent(t, g.request.ParentSettles)
	}

	if rapid.Bool().Draw(t, "window") {
		w := v1alpha1.UpgradeAllowance{Spec: v1alpha1.UpgradeAllowanceSpec{
			ServiceAccount: crossplaneUser,
			ValidFrom:      metav1.NewTime(g.request.Basis.Now), ValidUntil: metav1.NewTime(g.request.Basis.Now.Add(time.Hour)),
			Allow: permissions().Draw(t, "opens"),
		}}

		list, err := fixture.Windows(w)
		if err != nil {
			t.Fatalf("cannot compile a window: %v", err)
		}

		g.request.Basis.Upgrades = list
	}

	if rapid.Bool().Draw(t, "enforced") {
		g.enforcements = []v1alpha1.Enforcement{{Spec: v1alpha1.EnforcementSpec{
			Match:             v1alpha1.EnforcementMatch{ResourceRules: []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"children"}}}},
			ValidationActions: []v1alpha1.ValidationAction{pick(t, "does", v1alpha1.ActionDeny, v1alpha1.ActionHold, v1alpha1.ActionWarn)},
			Exceptions: []v1alpha1.Exception{{
				Name: "x", Subjects: subjects().Draw(t, "excepted"), Mutations: []string{fields().Draw(t, "exception")},
				Until: metav1.NewTime(g.request.Basis.Now.Add(time.Hour)),
			}},
		}}}
	}

	return g
}

// said is all that a decision says, as text.
func said(tb rapid.TB, d decision.Decision) string {
	tb.Helper()

	raw, err := json.Marshal(map[string]any{"want": corpus.Describe(d), "object": d.Object})
	if err != nil {
		tb.Fatal(err)
	}

	return string(raw)
}

func TestDecideIsDeterministicAndLeavesItsRequestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawn(t)
		req := g.with(t, g.policies)
		before := said(t, decision.Decision{Object: req.Old}) + said(t, decision.Decision{Object: req.New}) + said(t, decision.Decision{Object: req.Parent})
		first := said(t, decision.Decide(req))

		reversed := slices.Clone(g.policies)
		slices.Reverse(reversed)

		if diff := cmp.Diff(first, said(t, decision.Decide(g.with(t, reversed)))); diff != "" {
			t.Errorf("the same request, -first, +second:\n%s", diff)
		}

		after := said(t, decision.Decision{Object: req.Old}) + said(t, decision.Decision{Object: req.New}) + said(t, decision.Decision{Object: req.Parent})
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the request was changed, -before, +after:\n%s", diff)
		}
	})
}

func TestOneMorePolicyRefusesNothingThatIsAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawn(t)
		more := append(slices.Clone(g.policies), allowancePolicy(t, pick(t, "name", "a", "z", "gone")))
		without, with := decision.Decide(g.with(t, g.policies)), decision.Decide(g.with(t, more))

		for _, f := range without.Findings {
			// The first policy of a kind that names create governs how one is made; before that its fields are free.
			if f.Verdict != finding.Allowed || namesCreate(more) && !namesCreate(g.policies) {
				continue
			}

			i := slices.IndexFunc(with.Findings, func(o finding.Finding) bool { return o.Change.Same(f.Change) })
			if i < 0 || with.Findings[i].Verdict != finding.Allowed {
				t.Errorf("%s is allowed by %s, and not with one more policy: %+v", f.Change.Field, f.Rule, with.Findings)
			}
		}
	})
}

// namesCreate reports whether a policy is about the creation of what is drawn.
func namesCreate(policies []v1alpha1.AllowancePolicy) bool {
	return slices.ContainsFunc(policies, func(p v1alpha1.AllowancePolicy) bool {
		return p.Spec.Match.Kind == "Child" && slices.Contains(p.Spec.Match.Fields, "create")
	})
}

// pruned is an object without the allowances that have served.
func pruned(tb rapid.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()

	if u == nil {
		return nil
	}

	list, err := allowance.Parse(u)
	if err != nil {
		tb.Fatal(err)
	}

	out := u.DeepCopy()
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(allowance.Unserved(u, list))
	out.SetAnnotations(annotations)

	return out
}

func TestPruningChangesNoVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawn(t)
		full := decision.Decide(g.with(t, g.policies))
		g.request.Old, g.request.Parent = pruned(t, g.request.Old), pruned(t, g.request.Parent)
		after := decision.Decide(g.with(t, g.policies))

		type verdict struct {
			Field     string
			Verdict   finding.Verdict
			Rule      finding.Rule
			Policy    string
			Initiator string
			Trace     []v1alpha1.Hop
		}

		verdicts := func(d decision.Decision) []verdict {
			out := make([]verdict, 0, len(d.Findings))
			for _, f := range d.Findings {
				out = append(out, verdict{f.Change.Field, f.Verdict, f.Rule, f.Policy, f.Initiator(), f.Trace()})
			}

			return out
		}

		if diff := cmp.Diff(verdicts(full), verdicts(after)); diff != "" {
			t.Errorf("-full, +pruned:\n%s", diff)
		}
	})
}

func TestAnUnchangedObjectHasNoFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawn(t)
		if g.request.Old == nil {
			return
		}

		// One that carries a grant to delete it announces that.
		g.request.Old = staying(t, g.request.Old)
		g.request.Operation, g.request.New = request.OperationUpdate, g.request.Old.DeepCopy()
		d := decision.Decide(g.with(t, g.policies))

		if len(d.Findings) > 0 || len(d.Warnings) > 0 {
			t.Errorf("findings %+v, warnings %q", d.Findings, d.Warnings)
		}

		if left := change.Between(pruned(t, g.request.Old).Object, pruned(t, d.Object).Object); len(left) > 0 {
			t.Errorf("the object is changed by more than pruning: %+v", left)
		}
	})
}

// staying is an object without the allowances to delete it.
func staying(t *rapid.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()

	list, err := allowance.Parse(out)
	if err != nil {
		t.Fatal(err)
	}

	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(slices.DeleteFunc(list, allowance.OfDeletion))
	out.SetAnnotations(annotations)

	return out
}

func TestWhatIsHeldLeavesNothingUnallowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawn(t)
		if g.request.Old == nil || g.request.New == nil {
			return
		}

		g.request.Action = v1alpha1.ActionHold
		d := decision.Decide(g.with(t, g.policies))

		g.request.New = d.Object
		if again := decision.Decide(g.with(t, g.policies)); !again.Allowed() {
			t.Errorf("held %+v\nasked again: %+v", d.Held, again.Findings)
		}
	})
}

// FuzzDecide reads scenarios: nothing panics, the same comes of it twice, and
// no change is found in an object that stays the same.
func FuzzDecide(f *testing.F) {
	seeds, err := corpus.Sources()
	if err != nil {
		f.Fatal(err)
	}

	for _, raw := range seeds {
		f.Add(raw)
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := corpus.Parse("fuzz", raw)
		if err != nil || s.Request == nil {
			return
		}

		req, _ := s.Decision()
		first := said(t, decision.Decide(req))

		if diff := cmp.Diff(first, said(t, decision.Decide(req))); diff != "" {
			t.Errorf("the same request, -first, +second:\n%s", diff)
		}

		if req.Old == nil {
			return
		}

		req.Operation, req.New = request.OperationUpdate, req.Old
		again := resource.Annotation(req.Old, v1alpha1.AnnotationHeld) // Its user may make them again.
		if d := decision.Decide(req); len(d.Findings) > 0 && again == "" {
			t.Errorf("an unchanged object has findings: %+v", d.Findings)
		}
	})
}
