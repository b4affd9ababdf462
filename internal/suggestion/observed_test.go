// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// audited is an XR of which a function in mode Audit reports what it would hold.
const audited = `
apiVersion: example.org/v1
kind: Thing
metadata:
  name: one
  namespace: shop
  generation: 5
  annotations:
    kausality.io/trace: |
      - {field: spec.color, generation: 5, initiator: hans@example.com}
      - {field: spec.size, generation: 4, initiator: anna@example.com}
    kausality.io/held: |
      - {field: "spec.ports[1].name", cause: {type: Edit, user: anna@example.com, since: "2026-01-01T00:00:00Z"}, stored: {}}
spec:
  crossplane:
    compositionRef: {name: things}
    resourceRefs:
    - {apiVersion: rds.example.org/v1, kind: Instance, name: one-db}
    - {apiVersion: v1, kind: ConfigMap, name: one-page}
status:
  conditions:
  - type: Kausality
    status: "False"
    reason: Held
    message: "generation 5: settled; 3 held: Instance one-db: (audit) spec.forProvider.tags[0].value is changed from a to b: no policy; ConfigMap of composed resource more is (audit) created: no policy; Instance one-db is not deleted: no policy"
  - type: KausalityState
    status: "False"
    reason: Held
    message: '{"v":1,"progress":{"phase":"Settled"},"changes":[{"ref":{"apiVersion":"rds.example.org/v1","kind":"Instance","name":"one-db"},"field":"delete"}],"passed":[{"ref":{"apiVersion":"rds.example.org/v1","kind":"Instance","name":"one-db"},"field":"spec.forProvider.tags[0].value","from":"a","to":"b"},{"ref":{"apiVersion":"v1","kind":"ConfigMap","name":"more"},"composedResource":"more","field":"create"}]}'
`

func TestWhatConditionsReportIsObserved(t *testing.T) {
	instance := schema.GroupKind{Group: "rds.example.org", Kind: "Instance"}
	observed := func(child schema.GroupKind, field string) suggestion.Observed {
		return suggestion.Observed{
			Parent: schema.GroupKind{Group: "example.org", Kind: "Thing"}, ParentName: "shop/one",
			ParentFields: []string{"spec.color", "spec.ports[1].name"}, Child: child, ChildField: field, User: "anna@example.com", Composition: "things",
		}
	}

	want := []suggestion.Observed{
		observed(instance, "delete"),
		observed(instance, "spec.forProvider.tags[0].value"),
		observed(schema.GroupKind{Kind: "ConfigMap"}, "create"),
	}

	got := slices.Collect(suggestion.HeldOf(objects(t, []byte(audited))))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWhatWasObservedIsSuggested(t *testing.T) {
	const composition = "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: " +
		"{compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, mode: Pipeline, pipeline: [{step: compose, functionRef: {name: function-kcl}}]}}"

	const unknown = "Composition things: step compose: what function-kcl makes of the XR's fields is not known: " +
		"run it with mode Audit and see with --from-log or --held, or write policies for it\n"

	seen := func(field string, from ...string) suggestion.Observed {
		return suggestion.Observed{
			Parent: schema.GroupKind{Group: "example.org", Kind: "Thing"}, ParentName: "one", ParentFields: from,
			Child: schema.GroupKind{Group: "rds.example.org", Kind: "Instance"}, ChildField: field,
		}
	}

	for name, tc := range map[string]struct {
		reason             string
		given              string
		observed           []suggestion.Observed
		policies, problems string
	}{
		"One": {
			reason: "What changed with one field follows from that, whatever place it has in a list.", given: composition,
			observed: []suggestion.Observed{seen("spec.forProvider.tags[3].value", "metadata.labels[a]")},
			policies: "Thing [metadata.labels.a]: platform-team crossplane -> Instance [spec.forProvider.tags[*].value] External [Update]\n",
			problems: unknown,
		},
		"Several": {
			reason: "What changed with several may follow from each.", given: composition,
			observed: []suggestion.Observed{seen("spec.forProvider.size", "spec.size", "spec.color", "metadata.uid")},
			policies: "Thing [spec.size spec.color]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: unknown,
		},
		"Twice": {
			reason: "What is seen of two XRs is suggested once.", given: composition,
			observed: []suggestion.Observed{seen("spec.forProvider.size", "spec.size"), seen("spec.forProvider.size", "spec.size")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: unknown,
		},
		"Coincidence": {
			reason: "What was not changed each time has nothing to do with it.", given: composition,
			observed: []suggestion.Observed{
				seen("spec.forProvider.size", "spec.size", "spec.color"), seen("spec.forProvider.size", "spec.zone", "spec.size"),
			},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: unknown,
		},
		"Alone": {
			reason: "What was the only one once is, whatever was changed with it another time.", given: composition,
			observed: []suggestion.Observed{
				seen("spec.forProvider.size", "spec.size", "spec.deep"), seen("spec.forProvider.size", "spec.size"), seen("spec.forProvider.size", "spec.color"),
			},
			policies: "Thing [spec.size spec.color]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: unknown,
		},
		"Wider": {
			reason: "Where all of a map was changed once it is all of it.", given: composition,
			observed: []suggestion.Observed{
				seen("spec.forProvider.size", "spec.deep.a", "spec.color"), seen("spec.forProvider.size", "spec.deep", "spec.zone"),
			},
			policies: "Thing [spec.deep]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: unknown,
		},
		"NothingInCommon": {
			reason: "Where nothing was changed each time nothing is suggested.", given: composition,
			observed: []suggestion.Observed{
				seen("spec.forProvider.size", "spec.a", "spec.b"), seen("spec.forProvider.size", "spec.c", "spec.d"),
			},
			problems: unknown + "Composition things: seen of Thing one: spec.forProvider.size of Instance was to change twice, and no field of the XR " +
				"was changed each time (spec.a and spec.b; spec.c and spec.d): write a policy for it\n",
		},
		"PatchedBeside": {
			reason: "What a patch explains is not put down to what was changed with it.", given: composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}"),
			observed: []suggestion.Observed{seen("spec.forProvider.size", "spec.size", "spec.color")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
		},
		"OfAnother": {
			reason: "XRs of other Compositions do not matter.", given: composition,
			observed: []suggestion.Observed{func() suggestion.Observed {
				o := seen("spec.forProvider.size", "spec.size")
				o.Composition = "others"

				return o
			}()},
			problems: unknown,
		},
		"Patched": {
			reason: "What a patch says is not said again.", given: composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}"),
			observed: []suggestion.Observed{seen("spec.forProvider.size", "spec.size")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
		},
		"Created": {
			reason: "So is a creation.", given: composition + "\n---" + instance,
			observed: []suggestion.Observed{seen("create", "spec.size")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [create] External [Create]\n",
			problems: unknown,
		},
		"Deleted": {
			reason: "A deletion is for a person to allow.", given: composition, observed: []suggestion.Observed{seen("delete", "spec.size")},
			problems: unknown + "Composition things: seen of Thing one: an Instance was to be deleted: write a policy for that, if it may be\n",
		},
		"FromNothing": {
			reason: "What follows from no change that is recorded is told.", given: composition, observed: []suggestion.Observed{seen("spec.forProvider.size")},
			problems: unknown + "Composition things: seen of Thing one: spec.forProvider.size of Instance follows from a change that is not recorded on the XR\n",
		},
		"OfOthers": {
			reason: "Other XRs do not matter.", given: composition,
			observed: []suggestion.Observed{{Parent: schema.GroupKind{Kind: "Other"}, ParentFields: []string{"spec.size"}, ChildField: "spec"}},
			problems: unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := materialOf(t, tc.given, thing)
			m.Observed = slices.Values(tc.observed)
			o := options()
			o.Create = false

			s, _ := suggest(t, m, o)
			if diff := cmp.Diff(tc.policies, short(s)); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, lines(texts(s.Problems))); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCommentsSayWhereItWasSeenAndWhatIsAGuess(t *testing.T) {
	const composition = "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: " +
		"{compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, mode: Pipeline, pipeline: [{step: compose, functionRef: {name: function-kcl}}]}}"

	seen := func(at, name, field string, from ...string) suggestion.Observed {
		return suggestion.Observed{
			Parent: schema.GroupKind{Group: "example.org", Kind: "Thing"}, ParentName: name, ParentFields: from, At: at, User: "anna",
			Child: schema.GroupKind{Group: "rds.example.org", Kind: "Instance"}, ChildField: field,
		}
	}

	m := materialOf(t, composition, thing, instance)
	m.Observed = slices.Values([]suggestion.Observed{
		seen("a.log:3", "one", "spec.forProvider.size", "spec.size"), seen("a.log:9", "two", "spec.forProvider.size", "spec.size"),
		seen("b.log:7", "one", "spec.forProvider.tags.a", "spec.deep", "spec.color"),
	})

	s, _ := suggest(t, m, options())

	var got []string

	for _, p := range s.Policies {
		for _, c := range p.Comments {
			if strings.HasPrefix(c, "- ") {
				got = append(got, c)
			}
		}
	}

	want := []string{
		"- seen twice of 2 XRs, first of Thing one, changed by anna, at a.log:3: spec.size -> spec.forProvider.size",
		"- GUESS, for spec.color was changed with it each time: seen once of Thing one, changed by anna, at b.log:7: spec.deep -> spec.forProvider.tags.a",
		"- GUESS, for spec.deep was changed with it each time: seen once of Thing one, changed by anna, at b.log:7: spec.color -> spec.forProvider.tags.a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
