// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

const asked = `    kausality.io/asked: |
      generation: 7
      user: system:serviceaccount:crossplane-system:crossplane
      since: "2026-01-01T00:00:00Z"
      spec: {forProvider: {instanceClass: large, zone: early}}
      users: {spec.forProvider.zone: anna}
`

// policies are of one AllowancePolicy about an XDatabase.
func policies(t *testing.T, allow ...v1alpha1.Permission) *policy.Set {
	t.Helper()

	p := v1alpha1.AllowancePolicy{}
	p.Name = "size"
	p.Spec.Match = v1alpha1.Match{APIGroup: "example.org", Kind: "XDatabase", Fields: []string{"spec.size"}}
	p.Spec.Allow = allow

	compiled, errs := policy.Compile(&p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return policy.NewSet(compiled)
}

func TestWhatTheGateKeptIsReportedThoughTheSpecIsAsWished(t *testing.T) {
	xr := edit(t, steadyXR, "ALLOWANCES", "[]")
	observed := edit(t, observedRDS, "  ownerReferences", asked+"  ownerReferences")

	zone := v1alpha1.Permission{APIGroup: "rds.aws.upbound.io", Kind: "RDSInstance", Mutations: []string{"spec.forProvider.zone"}}
	update := v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}}

	const said = "RDSInstance db-rds: spec.forProvider.zone is late, and stays early outside: it was stored by anna at 2026-01-01T00:00:00Z, " +
		"and the gate did not let it out: take it back, or "

	for name, tc := range map[string]struct {
		reason            string
		observed, desired string
		policies          *policy.Set
		mode              v1alpha1.Mode
		want              []string
		text              string
	}{
		"NoPolicy": {
			reason: "What lets nothing out is to be written.", observed: observed, desired: desiredRDS,
			want: []string{"spec.forProvider.zone"},
			text: said + "add an AllowancePolicy about XDatabase that allows RDSInstance spec.forProvider.zone and External Update, and have it set back and set again",
		},
		"Policy": {
			reason: "A policy lets it out.", observed: observed, desired: desiredRDS, policies: policies(t, zone, update),
			want: []string{"spec.forProvider.zone"},
			text: said + `have it set back and set again: policy "size" lets it out once a change of spec.size is allowed`,
		},
		"WithoutExternal": {
			reason: "It lets the resource alone be changed.", observed: observed, desired: desiredRDS, policies: policies(t, zone),
			want: []string{"spec.forProvider.zone"},
			text: said + `let policy "size" allow External Update too, and have it set back and set again`,
		},
		"PutBack": {
			reason: "What the pipeline puts back itself needs no word.", observed: observed,
			desired: edit(t, desiredRDS, "instanceClass: small", "instanceClass: large"),
			want:    []string{"spec.forProvider.zone"},
		},
		"Audit": {
			reason: "In mode Audit nothing is kept.", observed: observed, desired: desiredRDS, mode: v1alpha1.ModeAudit,
		},
		"Ungated": {
			reason: "Without a gate nothing is kept.", observed: edit(t, observed, "state: Closed", "state: Ungated"), desired: desiredRDS,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, xr, tc.observed, tc.desired)
			req.Policies = tc.policies

			if tc.mode != "" {
				req.Mode = tc.mode
			}

			held := slices.DeleteFunc(composition.Decide(req).Held, func(h composition.Held) bool { return !h.Inside })
			if diff := cmp.Diff(tc.want, fields(held)); diff != "" {
				t.Fatalf("%s\nHeld inside, -want, +got:\n%s", tc.reason, diff)
			}

			if tc.text != "" && held[0].String() != tc.text {
				t.Errorf("%s\nit says %q, want %q", tc.reason, held[0], tc.text)
			}
		})
	}
}

// TestWhatCrossplaneStoredAndNothingAllowsIsPutBack and is held then, as it was before it was stored.
func TestWhatCrossplaneStoredAndNothingAllowsIsPutBack(t *testing.T) {
	observed := edit(t, observedRDS, "instanceClass: small", "instanceClass: medium", "  ownerReferences", asked+"  ownerReferences")
	desired := edit(t, desiredRDS, "instanceClass: small", "instanceClass: medium")
	before := edit(t, observedRDS, "instanceClass: small", "instanceClass: large", "zone: late", "zone: early")

	entry := func(r composition.Result) (v1alpha1.HeldEntry, bool) {
		for _, h := range r.Held {
			if h.Field == "spec.forProvider.instanceClass" {
				return h.Entry, !h.Inside
			}
		}

		return v1alpha1.HeldEntry{}, false
	}
	class := func(r composition.Result) string {
		return resource.String(r.Desired.Object, "spec", "forProvider", "instanceClass")
	}

	for name, tc := range map[string]struct {
		reason, xr string
		recorded   bool
		want       string
	}{
		"Unallowed":         {reason: "Nothing allows it.", xr: edit(t, steadyXR, "ALLOWANCES", "[]"), want: "large"},
		"Recorded":          {reason: "It was let through once.", xr: edit(t, steadyXR, "ALLOWANCES", "[]"), recorded: true, want: "large"},
		"Allowed":           {reason: "To put it back and to let it through would have no end.", xr: allowing("spec.forProvider.instanceClass", "Update"), want: "medium"},
		"AllowedAndWritten": {reason: "Nor once it is recorded.", xr: allowing("spec.forProvider.instanceClass", "Update"), recorded: true, want: "medium"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, tc.xr, observed, desired)
			if tc.recorded {
				text, err := wish.RecordOf(req.Desired.Object).Format(req.Desired.GetAPIVersion(), req.Desired.GetKind())
				if err != nil {
					t.Fatal(err)
				}

				annotations := req.Observed.GetAnnotations()
				annotations[v1alpha1.AnnotationWish] = text
				req.Observed.SetAnnotations(annotations)
			}

			stored := req.Observed.DeepCopy()

			got := composition.Decide(req)
			if diff := cmp.Diff(stored.Object, req.Observed.Object); diff != "" {
				t.Errorf("%s\nIt modifies what is observed, -was, +is:\n%s", tc.reason, diff)
			}

			e, held := entry(got)
			if class(got) != tc.want || held != (tc.want == "large") {
				t.Fatalf("%s\nthe class is %q, want %q; held: %v", tc.reason, class(got), tc.want, got.Held)
			}

			if !held {
				return
			}

			was, _ := entry(composition.Decide(request(t, tc.xr, before, desired)))
			if e.Digest == "" || e.Digest != was.Digest || e.From != "large" || e.To != "medium" {
				t.Errorf("%s\nit is listed as %+v, and before it was stored as %+v", tc.reason, e, was)
			}

			// It is not recorded as wished: else it would count as let through once it is put back.
			rec, err := wish.Parse(got.Desired)
			if err != nil || rec.Same(rec, req.Desired.Object, change.Path{fieldpath.Field("spec"), fieldpath.Field("forProvider"), fieldpath.Field("instanceClass")}) {
				t.Errorf("%s\nit is recorded: %v, %v", tc.reason, rec, err)
			}
		})
	}
}

// TestWhatIsNotCrossplanesToPutBackStaysAndIsReported as before: nothing of it disappears from what is said.
func TestWhatIsNotCrossplanesToPutBackStaysAndIsReported(t *testing.T) {
	const nothing = "[]"

	for name, tc := range map[string]struct {
		reason                    string
		observed, desired, record []string
		held                      string
		want                      any
		path                      []string
	}{
		"ByHand": {
			reason: "Crossplane does not own it: put back, it would be nobody's, and could not be approved.",
			record: []string{"large, zone: early}", "medium, zone: early}"}, desired: []string{"engine: postgres", "engine: postgres, zone: late"},
			held: "spec.forProvider.zone inside", want: "late", path: []string{"zone"},
		},
		"ByWhoMayForTheManagedResourceAlone": {
			reason: "It was allowed.", observed: []string{"instanceClass: small", "instanceClass: medium"}, desired: []string{"instanceClass: small", "instanceClass: medium"},
			record: []string{"user: system:serviceaccount:crossplane-system:crossplane", "user: hans"},
			held:   "spec.forProvider.instanceClass inside", want: "medium", path: []string{"instanceClass"},
		},
		"ElementRemoved": {
			reason: "What is put back of a list, and that nobody wishes, would be taken for somebody else's.",
			record: []string{"instanceClass: large, zone: early", "tags: [{name: a, value: b}, {name: gone, value: c}, {name: z, value: theirs}]"},
			held:   "spec.forProvider.tags[1].name inside", want: []any{map[string]any{"name": "a", "value": "b"}}, path: []string{"tags"},
		},
		"AnotherType": {
			reason: "The record is of another version of the API.", record: []string{"instanceClass: large, zone: early", "instanceClass: [large]"},
			held: "spec.forProvider.instanceClass inside", want: "small", path: []string{"instanceClass"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, edit(t, steadyXR, "ALLOWANCES", nothing),
				edit(t, observedRDS, append([]string{"  ownerReferences", edit(t, asked, tc.record...) + "  ownerReferences"}, tc.observed...)...), edit(t, desiredRDS, tc.desired...))

			got := composition.Decide(req)

			said := make([]string, 0, len(got.Held))

			for _, h := range got.Held {
				text := h.Field
				if h.Inside {
					text += " inside"
				}

				said = append(said, text)
			}

			if !slices.Contains(said, tc.held) {
				t.Errorf("%s\nheld are %q, want %q", tc.reason, said, tc.held)
			}

			v, _ := resource.Value(got.Desired.Object, append([]string{"spec", "forProvider"}, tc.path...)...)
			if diff := cmp.Diff(tc.want, v); diff != "" {
				t.Errorf("%s\nDesired, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWhatTheAPIServerDoesNotTakeBackIsTriedAFewTimes for as long as it is tried, nothing else of the resource is
// applied either.
func TestWhatTheAPIServerDoesNotTakeBackIsTriedAFewTimes(t *testing.T) {
	observed := edit(t, observedRDS, "instanceClass: small", "instanceClass: medium", "  ownerReferences", asked+"  ownerReferences")
	desired := edit(t, desiredRDS, "instanceClass: small", "instanceClass: medium")
	xr := object(t, edit(t, steadyXR, "ALLOWANCES", "[]"))

	const runs = 8

	classes := make([]string, 0, runs)

	for range runs {
		req := request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), observed, desired)
		req.XR = xr

		got := composition.Decide(req)
		classes = append(classes, resource.String(got.Desired.Object, "spec", "forProvider", "instanceClass"))

		list := composition.List(xr, &composition.Status{}, map[string]*unstructured.Unstructured{"rds": req.Observed}, got.Held, nil, true)

		xr.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionState, "status": "False", "message": resource.FormatState(list),
		}}}
	}

	want := []string{"large", "large", "large", "large", "large", "medium", "medium", "medium"}
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
