// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestWhatIsHeldOfAnUpdate(t *testing.T) {
	steady := edit(t, steadyXR, "ALLOWANCES", "[]")

	cases := map[string]struct {
		reason  string
		xr      string
		desired string
		held    []string
		spec    string
	}{
		"Nothing": {
			reason: "What Crossplane and the provider add is no change.", xr: steady, desired: desiredRDS,
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
		"Scalar": {
			reason: "A field keeps its observed value.", xr: steady, desired: edit(t, desiredRDS, "instanceClass: small", "instanceClass: large"),
			held: []string{"spec.forProvider.instanceClass"},
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
		"Beside": {
			reason: "What is allowed passes beside it.", xr: allowing("spec.forProvider.engine", "Update"),
			desired: edit(t, desiredRDS, "instanceClass: small, engine: postgres", "instanceClass: large, engine: mysql"),
			held:    []string{"spec.forProvider.instanceClass"},
			spec:    "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: mysql, tags: [{name: a, value: b}]}}",
		},
		"RemovedElement": {
			reason: "An owned element that is no longer desired is a removal, though its list is not mentioned at all.",
			xr:     steady, desired: edit(t, desiredRDS, ", tags: [{name: a, value: b}]", ""),
			held: []string{"spec.forProvider.tags[0].name", "spec.forProvider.tags[0].value"},
			spec: "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, " +
				"tags: [{name: a, value: b}]}}",
		},
		"Opened": {
			reason: "The gate's field is stamped as observed, whatever is desired.", xr: steady,
			desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: ['*'], "),
			spec:    "{managementPolicies: [Observe, LateInitialize], forProvider: {instanceClass: small, engine: postgres, tags: [{name: a, value: b}]}}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := requestFor(t, tc.xr, observedRDS, tc.desired)
			before := []any{req.XR.DeepCopy(), req.Observed.DeepCopy(), req.Desired.DeepCopy()}
			out := composition.Decide(req)

			if diff := cmp.Diff(tc.held, fields(out.Held)); diff != "" || len(out.Problems) > 0 {
				t.Fatalf("%s\nheld, -want, +got:\n%s\nproblems %v", tc.reason, diff, out.Problems)
			}

			if diff := cmp.Diff(object(t, tc.spec).Object, out.Desired.Object["spec"]); diff != "" {
				t.Errorf("%s\nspec, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, []any{req.XR, req.Observed, req.Desired}); diff != "" {
				t.Errorf("%s\nDecide changed its request:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMetadataThatCrossplaneAddsLaterIsNoRemoval(t *testing.T) {
	raw := &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{Kind: "RDSInstance", Fields: []string{"metadata"}},
		Allow: []v1alpha1.Permission{{Kind: "A", Mutations: []string{"spec"}}},
	}}

	p, errs := policy.Compile(raw)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	for desired, want := range map[string][]string{
		desiredRDS: nil,
		edit(t, desiredRDS, "metadata: {labels: {team: a}}\n", ""):                       {"metadata.labels.team"},
		edit(t, desiredRDS, "labels: {team: a}", "labels: {crossplane.io/composite: x}"): {"metadata.labels.team", "metadata.labels[crossplane.io/composite]"},
	} {
		req := requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"), observedRDS, desired)
		req.Basis.Policies = policy.NewSet(p)

		if diff := cmp.Diff(want, fields(composition.Decide(req).Held)); diff != "" {
			t.Errorf("held of\n%s\n-want, +got:\n%s", desired, diff)
		}
	}
}

func TestAResourceIsRemovedInTwoSteps(t *testing.T) {
	xr := allowing("delete", "Delete")

	// 1. It stays desired, with the allowance to delete its external resource.
	out := composition.Decide(requestFor(t, xr, observedRDS, ""))
	if !out.Kept || out.Desired == nil || len(out.Held) > 0 || out.Pending != "RDSInstance db-rds waits for its gate to open for Delete" {
		t.Fatalf("first run: %+v", out)
	}

	got := resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances)
	want := `- relation: External
  mutations:
  - Delete
  generation: 7
  id: "7.0"
  initiator: hans
  source:
    type: Deletion
  trace:
  - kind: XDatabase
    name: db
    generation: 12
    field: spec.size
  - kind: RDSInstance
    name: db-rds
    generation: 7
    field: delete
`

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allowances, -want, +got:\n%s", diff)
	}

	if got := resource.Strings(out.Desired.Object, "spec", "managementPolicies"); !cmp.Equal(got, []string{"Observe", "LateInitialize"}) {
		t.Errorf("managementPolicies: %v", got)
	}

	// 2. Its gate is open: it is deleted.
	open := edit(t, observedRDS, "[Observe, LateInitialize]", "[Observe, Delete]")
	if out := composition.Decide(requestFor(t, xr, open, "")); out.Kept || out.Desired != nil || out.Pending == "" {
		t.Errorf("second run: %+v", out)
	}

	// A gate that is open is no reason to delete what is not allowed.
	out = composition.Decide(requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"), open, ""))
	if !out.Kept || out.Desired == nil || len(out.Held) != 1 || out.Held[0].Change.Field != "delete" {
		t.Errorf("unasked: %+v", out)
	}

	if strings.Contains(resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances), "Delete") {
		t.Error("what is not to be deleted carries the allowance to")
	}

	// The Composition wants it again: what was granted is taken back.
	granted := edit(t, open, "kausality.io/desired-policies:", "kausality.io/allowances: |\n      - {relation: External, mutations: [Delete], generation: 7, initiator: hans, id: '7.0', source: {type: Deletion}, trace: [{kind: RDSInstance, name: db-rds, generation: 7, field: delete}]}\n    kausality.io/desired-policies:")
	if out := composition.Decide(requestFor(t, xr, granted, desiredRDS)); resource.Annotation(out.Desired, v1alpha1.AnnotationAllowances) != "[]\n" {
		t.Errorf("cancelled: %v", out.Desired.GetAnnotations())
	}

	// What was to be orphaned is deleted at once, and so is what is no managed resource.
	for _, observed := range []string{
		edit(t, observedRDS, `"policies":["*"]`, `"policies":["Observe","Create","Update"]`),
		"{apiVersion: v1, kind: RDSInstance, metadata: {name: a}, spec: {}}",
	} {
		if out := composition.Decide(requestFor(t, xr, observed, "")); out.Desired != nil || len(out.Held) > 0 {
			t.Errorf("without a gate: %+v", out)
		}
	}
}

func TestANewResourceIsMadeWithItsInitialSetOrLeftOut(t *testing.T) {
	fresh := "{apiVersion: example.org/v1alpha1, kind: XDatabase, metadata: {name: db-x1, namespace: prod, labels: {crossplane.io/composite: db}, generation: 1}, spec: {size: small}}"

	cases := map[string]struct {
		reason, xr, desired string
		policies            []string
		held                bool
	}{
		"First":   {reason: "While its XR is built up.", xr: fresh, desired: desiredRDS, policies: []string{"Observe", "LateInitialize", "Create"}},
		"Later":   {reason: "Asked for later.", xr: allowing("create", "Create"), desired: desiredRDS, policies: []string{"Observe", "LateInitialize", "Create"}},
		"Unasked": {reason: "Not asked for.", xr: edit(t, steadyXR, "ALLOWANCES", "[]"), desired: desiredRDS, held: true},
		"Narrow":  {reason: "Never wider than the Composition asks.", xr: fresh, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [Observe], "), policies: []string{"Observe"}},
		"Paused":  {reason: "A paused one is paused.", xr: fresh, desired: edit(t, desiredRDS, "spec: {", "spec: {managementPolicies: [], "), policies: []string{}},
		"Plain":   {reason: "What is no managed resource has no gate.", xr: fresh, desired: "{apiVersion: v1, kind: ConfigMap, data: {a: b}}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := composition.Decide(requestFor(t, tc.xr, "", tc.desired))
			if (out.Desired == nil) != tc.held || (len(out.Held) > 0) != tc.held {
				t.Fatalf("%s\nDecide: %+v", tc.reason, out)
			}

			if tc.held {
				return
			}

			if diff := cmp.Diff(tc.policies, resource.Strings(out.Desired.Object, "spec", "managementPolicies")); diff != "" {
				t.Errorf("%s\nmanagementPolicies, -want, +got:\n%s", tc.reason, diff)
			}

			if out.Desired.GetGenerateName() != "" || out.Desired.GetNamespace() != "" {
				t.Errorf("%s\nname and namespace are Crossplane's to give: %v", tc.reason, out.Desired)
			}

			if tc.xr == fresh && !strings.Contains(resource.Annotation(out.Desired, v1alpha1.AnnotationTrace), "name: db-\n") {
				t.Errorf("%s\ntrace without Crossplane's name prefix:\n%s", tc.reason, resource.Annotation(out.Desired, v1alpha1.AnnotationTrace))
			}
		})
	}
}

func TestAResourceOfWhichNothingIsKnownStaysAsItIs(t *testing.T) {
	broken := edit(t, observedRDS, `"f:metadata":`, `"k:{":`)

	for _, desired := range []string{desiredRDS, ""} {
		out := composition.Decide(requestFor(t, allowing("spec", "Update"), broken, desired))
		if !out.Kept || len(out.Held) != 1 || len(out.Problems) != 1 || out.Held[0].Change.Field != "metadata.managedFields" {
			t.Errorf("Decide: %+v", out)
		}

		// What is left out Crossplane takes away.
		observed := object(t, broken)
		if diff := cmp.Diff(observed.Object["spec"], out.Desired.Object["spec"]); diff != "" {
			t.Errorf("spec, -observed, +desired:\n%s", diff)
		}

		if diff := cmp.Diff(observed.GetLabels(), out.Desired.GetLabels()); diff != "" {
			t.Errorf("labels, -observed, +desired:\n%s", diff)
		}

		annotations := observed.GetAnnotations()
		delete(annotations, v1alpha1.AnnotationGate) // The manager's.

		if diff := cmp.Diff(annotations, out.Desired.GetAnnotations()); diff != "" {
			t.Errorf("annotations, -observed, +desired:\n%s", diff)
		}

		if _, ok := out.Desired.Object["status"]; ok {
			t.Error("a status is desired")
		}
	}
}

func TestTheRequestIsLeftAlone(t *testing.T) {
	annotated := edit(t, desiredRDS, "{labels: {team: a}}", "{labels: {team: a}, annotations: {a: b}}")
	larger := edit(t, annotated, "instanceClass: small", "instanceClass: large", "spec: {", "spec: {managementPolicies: ['*'], ")

	for name, tc := range map[string]struct{ xr, observed, desired string }{
		"Allowed": {allowing("spec.forProvider", "Update"), observedRDS, larger},
		"Held":    {allowing("spec.other", "Update"), observedRDS, larger},
		"Created": {allowing("create", "Create"), "", larger},
		"Removed": {allowing("delete", "Delete"), observedRDS, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor(t, tc.xr, tc.observed, tc.desired)
			before := []any{req.XR.DeepCopy(), req.Observed.DeepCopy(), req.Desired.DeepCopy()}

			composition.Decide(req)

			if diff := cmp.Diff(before, []any{req.XR, req.Observed, req.Desired}); diff != "" {
				t.Errorf("-before, +after:\n%s", diff)
			}
		})
	}
}
