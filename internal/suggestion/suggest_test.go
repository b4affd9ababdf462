// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// thing defines the XR of the tests below.
const thing = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: string}, color: {type: string, default: red}, deep: {type: object, properties: {a: {type: string}, b: {type: string}}}}
          status:
            type: object
            properties: {id: {type: string}}
`

// instance defines the managed resource of the tests below.
const instance = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: instances.rds.example.org}
spec:
  group: rds.example.org
  names: {kind: Instance, plural: instances}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              forProvider:
                type: object
                x-kubernetes-validations: [{rule: "!has(oldSelf.zone) || self.zone == oldSelf.zone"}]
                properties:
                  size: {type: string}
                  zone: {type: string}
                  engine: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
                  disk: {type: string, description: "Kind of disk. Changing this forces a new resource to be created."}
                  tags: {type: object, additionalProperties: {type: string}}
              providerConfigRef: {type: object, properties: {name: {type: string}}}
`

// composing is a Composition of things with one managed resource, of which these are the
// patches.
func composing(patches string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: patches}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets: [{name: sizes, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}]}]
      resources:
      - {name: db, base: {apiVersion: rds.example.org/v1, kind: Instance, spec: {forProvider: {}}}, patches: [%s]}
  - {step: kausality, functionRef: {name: function-kausality}}
`, patches)
}

// short writes policies in a line each.
func short(s suggestion.Suggestion) string {
	var out strings.Builder

	for _, p := range s.Policies {
		spec := p.Policy.Spec
		fmt.Fprintf(&out, "%s %v:", spec.Match.Kind, spec.Match.Fields)

		for _, subject := range spec.Subjects {
			fmt.Fprintf(&out, " %s", subject.Name)
		}

		out.WriteString(" ->")

		for _, a := range spec.Allow {
			fmt.Fprintf(&out, " %s%s %v", a.Kind, strings.TrimSuffix(string(a.Relation), "Child"), a.Mutations)
		}

		out.WriteString("\n")
	}

	return out.String()
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}

	return strings.Join(list, "\n") + "\n"
}

func TestSuggest(t *testing.T) {
	const size = "{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}"

	const started = "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n"

	const where = "Composition things: step compose: resource db: "

	for name, tc := range map[string]struct {
		reason   string
		given    []string
		change   func(*suggestion.Options)
		policies string
		problems string
		// note is one of the notes.
		note string
	}{
		"Create": {
			reason: "Who may start changes makes roots, too.", given: []string{composing(size)},
			change:   func(o *suggestion.Options) { o.Create = true },
			policies: "Thing [create]: platform-team ->\n" + started,
		},
		"Delete": {
			reason: "A deletion takes along what is outside.", given: []string{composing(size)},
			change:   func(o *suggestion.Options) { o.Delete = true },
			policies: started + "Thing [delete]: platform-team -> Instance [delete] External [Delete]\n",
		},
		"NoExternal": {
			reason: "What is changed may be kept from going outside.", given: []string{composing(size)},
			change:   func(o *suggestion.Options) { o.External = false },
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size]\n",
		},
		"Nobody": {
			reason: "Without a subject the policies let in nobody.", given: []string{composing(size)},
			change:   func(o *suggestion.Options) { o.Subjects = nil },
			policies: strings.Replace(started, "platform-team", "REPLACE-ME: who may start this", 1),
		},
		"PatchSet": {reason: "The patches of a set are the resource's.", given: []string{composing("{type: PatchSet, patchSetName: sizes}")}, policies: started},
		"NoPatchSet": {
			reason: "A set that there is not is told.", given: []string{composing(size + ", {type: PatchSet, patchSetName: colors}")}, policies: started,
			problems: where + `patches[1]: there is no PatchSet "colors"` + "\n",
		},
		"SameField": {
			reason: "Without toFieldPath the field is the same.", given: []string{composing("{fromFieldPath: spec.forProvider.size}, " + size)},
			policies: "Thing [spec.forProvider.size spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
			problems: "Composition things: policy things-thing-forprovider-size-size: spec.match.fields[0]: spec.forProvider.size: there is no such field; " +
				"spec has color, deep, size\n",
		},
		"NoSuchField": {
			reason:   "A field that the resource does not have is told as the manager tells it.",
			given:    []string{composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.sice}")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.sice] External [Update]\n",
			problems: "Composition things: policy things-thing-size: spec.allow[0].mutations[0]: spec.forProvider.sice: there is no such field; " +
				"did you mean spec.forProvider.size?\n",
		},
		"Optional": {
			reason:   "A resource that waits for a field is made once it is there.",
			given:    []string{composing("{fromFieldPath: spec.deep.a, toFieldPath: spec.forProvider.size, policy: {fromFieldPath: Required}}")},
			policies: "Thing [spec.deep.a]: platform-team crossplane -> Instance [create spec.forProvider.size] External [Create Update]\n",
		},
		"Required": {
			reason:   "A field that is always there makes nothing later.",
			given:    []string{composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size, policy: {fromFieldPath: Required}}")},
			policies: started,
		},
		"Default": {
			reason:   "Nor does one that has a default.",
			given:    []string{composing("{fromFieldPath: spec.color, toFieldPath: spec.forProvider.size, policy: {fromFieldPath: Required}}")},
			policies: "Thing [spec.color]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n",
		},
		"Immutable": {
			reason:   "What the API server refuses to change is not suggested.",
			given:    []string{composing(size + ", {fromFieldPath: spec.color, toFieldPath: spec.forProvider.engine}")},
			policies: started,
			note: "spec.color -> spec.forProvider.engine of resource db (Instance): it cannot be updated in place: the API server refuses to change it " +
				`(self == oldSelf). No policy lets it follow: see "Another engine is another database" in the cookbook.`,
		},
		"ImmutableAbove": {
			reason:   "The rule may be about the object that it is in.",
			given:    []string{composing(size + ", {fromFieldPath: spec.size, toFieldPath: spec.forProvider.zone}")},
			policies: started,
			note: "spec.size -> spec.forProvider.zone of resource db (Instance): it cannot be updated in place: the API server refuses to change it " +
				`(!has(oldSelf.zone) || self.zone == oldSelf.zone). No policy lets it follow: see "Another engine is another database" in the cookbook.`,
		},
		"Remade": {
			reason:   "What makes another external object is not suggested, either.",
			given:    []string{composing("{fromFieldPath: spec.color, toFieldPath: spec.forProvider.disk}")},
			policies: "",
			note: "spec.color -> spec.forProvider.disk of resource db (Instance): it cannot be updated in place: its description says: forces a new resource. " +
				`No policy lets it follow: see "Another engine is another database" in the cookbook.`,
		},
		"Name": {
			reason:   "Another name is another object.",
			given:    []string{composing("{fromFieldPath: spec.size, toFieldPath: metadata.name}")},
			policies: "",
			note: "spec.size -> metadata.name of resource db (Instance): another one is another object, " +
				"which no policy that is suggested lets Crossplane make in its place.",
		},
		"Labels": {
			reason:   "Labels need no policy, and the field needs one all the same, for others are named.",
			given:    []string{composing(`{fromFieldPath: spec.size, toFieldPath: "metadata.labels[size]"}, {fromFieldPath: spec.color, toFieldPath: "metadata.annotations[color]"}`)},
			policies: "Thing [spec.size spec.color]: platform-team ->\n",
		},
		"NotOutside": {
			reason:   "Which ProviderConfig is taken is no update of what is outside.",
			given:    []string{composing("{fromFieldPath: spec.size, toFieldPath: spec.providerConfigRef.name}")},
			policies: "Thing [spec.size]: platform-team crossplane -> Instance [spec.providerConfigRef.name]\n",
		},
		"Machinery": {
			reason:   "Crossplane's own fields, and what never changes, are nobody's to edit.",
			given:    []string{composing("{fromFieldPath: metadata.uid, toFieldPath: spec.forProvider.size}, {fromFieldPath: spec.crossplane.compositionRef.name, toFieldPath: spec.forProvider.size}")},
			policies: "",
			note:     "metadata.uid and spec.crossplane.compositionRef.name of a Thing: nobody edits it: no policy is about it.",
		},
		"Generation": {
			reason:   "What changes with everything cannot be named.",
			given:    []string{composing("{fromFieldPath: metadata.generation, toFieldPath: spec.forProvider.size}")},
			problems: where + "patches[0]: it reads metadata.generation, which changes with everything: no policy can be about that\n",
		},
		"Unfed": {
			reason: "Fields that feed nothing are told.", given: []string{composing(size + ", {fromFieldPath: spec.deep.b, toFieldPath: spec.forProvider.tags.b}")},
			policies: started + "Thing [spec.deep.b]: platform-team crossplane -> Instance [spec.forProvider.tags.b] External [Update]\n",
			note: "spec.color and spec.deep.a of a Thing: no patch that was followed reads it, and no policy is about it. " +
				"As policies say who may change other fields, who changes it is warned, or refused by an Enforcement.",
		},
		"Environment": {
			reason:   "What comes from an EnvironmentConfig is nobody's change.",
			given:    []string{composing("{type: FromEnvironmentFieldPath, fromFieldPath: region, toFieldPath: spec.forProvider.size}, " + size)},
			policies: started,
			problems: where + "patches[0]: it reads region of the environment, which comes from an EnvironmentConfig or another function: " +
				"whose change that is cannot be told; an UpgradeAllowance lets it through\n",
		},
		"EnvironmentLater": {
			reason: "A patch reads of the environment what patches before it have written.",
			given: []string{composing("{type: FromEnvironmentFieldPath, fromFieldPath: size, toFieldPath: spec.forProvider.tags.size}, " + size +
				", {type: ToEnvironmentFieldPath, fromFieldPath: spec.forProvider.size, toFieldPath: size}")},
			policies: started,
			problems: where + "patches[0]: it reads size of the environment, which comes from an EnvironmentConfig or another function: " +
				"whose change that is cannot be told; an UpgradeAllowance lets it through\n",
		},
		"StatusOfOthers": {
			reason:   "So is a status that no patch writes.",
			given:    []string{composing("{fromFieldPath: status.id, toFieldPath: spec.forProvider.size}")},
			problems: where + "patches[0]: it reads status.id of the XR, which no patch of the Composition writes: it cannot be followed to anybody's change\n",
		},
		"StatusOfNobody": {
			reason: "A status that follows from nobody's change needs no policy until it changes.",
			given: []string{composing("{fromFieldPath: status.id, toFieldPath: spec.forProvider.tags.id}, " +
				"{type: ToCompositeFieldPath, fromFieldPath: status.atProvider.arn, toFieldPath: status.id}")},
			note: "compose/db patches[0]: status.id -> spec.forProvider.tags.id follows from no field that somebody edits. It is made with the XR; " +
				"where it changes later it is held, unless an UpgradeAllowance lets it through.",
		},
		"Shown": {
			reason: "What a status shows of the spec follows from that field alone, and anything else from all of them.",
			given: []string{composing(size + ", {fromFieldPath: spec.color, toFieldPath: spec.forProvider.tags.c}, " +
				"{type: ToCompositeFieldPath, fromFieldPath: status.atProvider.size, toFieldPath: status.size}, " +
				"{type: ToCompositeFieldPath, fromFieldPath: status.atProvider.arn, toFieldPath: status.id}, " +
				"{fromFieldPath: status.size, toFieldPath: spec.forProvider.tags.s}, {fromFieldPath: status.id, toFieldPath: spec.forProvider.tags.i}")},
			policies: "Thing [spec.size]: platform-team crossplane -> " +
				"Instance [spec.forProvider.size spec.forProvider.tags.i spec.forProvider.tags.s] External [Update]\n" +
				"Thing [spec.color]: platform-team crossplane -> Instance [spec.forProvider.tags.c spec.forProvider.tags.i] External [Update]\n",
		},
		"ToSpec": {
			reason:   "Of an XR functions write the status alone.",
			given:    []string{composing(size + ", {type: ToCompositeFieldPath, fromFieldPath: status.atProvider.arn, toFieldPath: spec.color}")},
			policies: started,
			note: "step compose: resource db: patches[1]: it writes spec.color of the XR: " +
				"of what functions want of an XR Crossplane takes the status alone",
		},
		"NoType": {
			reason: "A type of patch that is not known is told.", given: []string{composing(size + ", {type: FromSky, fromFieldPath: spec.color}")}, policies: started,
			problems: where + `patches[1]: patches of type "FromSky" are not known` + "\n",
		},
		"NoPath": {
			reason: "So are paths that are none, and those that are missing.",
			given: []string{composing(`{fromFieldPath: "spec.a[", toFieldPath: spec.forProvider.size}, {fromFieldPath: "spec.list[*]", toFieldPath: spec.forProvider.size}, ` +
				`{fromFieldPath: spec.size, toFieldPath: "a..b"}, {toFieldPath: spec.forProvider.size}`)},
			problems: where + "patches[0]: fromFieldPath \"spec.a[\" names no single field\n" +
				where + "patches[1]: fromFieldPath \"spec.list[*]\" names no single field\n" +
				where + "patches[2]: toFieldPath \"a..b\": not a field path: unexpected '.' at position 2\n" +
				where + "patches[3]: it does not say from which field to which\n",
		},
		"KindPatched": {
			reason: "A kind that a patch writes is told.", given: []string{composing(size + ", {fromFieldPath: spec.color, toFieldPath: kind}")},
			policies: started,
			problems: where + "patches[1]: it writes kind: it is taken for an Instance, as its base says\n",
			note: "spec.color -> kind of resource db (Instance): another one is another object, " +
				"which no policy that is suggested lets Crossplane make in its place.",
		},
		"NoDefinition": {
			reason: "Without its definition an XR is taken for one that people edit.", given: []string{strings.ReplaceAll(composing(size), "kind: Thing", "kind: Item")},
			policies: strings.ReplaceAll(started, "Thing", "Item"),
			problems: "Composition things: there is no CompositeResourceDefinition of Item.example.org: it is taken for one without Claims, " +
				"and which of its fields are always there is not known\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := materialOf(t, append(tc.given, thing, instance)...)

			o := options()
			o.Create = false

			if tc.change != nil {
				tc.change(&o)
			}

			s, _ := suggest(t, m, o)

			if diff := cmp.Diff(tc.policies, short(s)); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, lines(texts(s.Problems))); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}

			if tc.note != "" && !slices.Contains(s.Notes, tc.note) {
				t.Errorf("%s\nno note is: -want, +got:\n%s", tc.reason, cmp.Diff(tc.note, lines(s.Notes)))
			}
		})
	}
}

func texts(problems []suggestion.Problem) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.String()
	}

	return out
}

// materialOf sorts objects, the Composition that is suggested for first.
func materialOf(t *testing.T, given ...string) suggestion.Material {
	t.Helper()

	var out suggestion.Material

	for _, text := range given {
		for _, u := range objects(t, []byte(text)) {
			out = with(out, u)
		}
	}

	out.Composition = out.Compositions[0]

	return out
}

func with(m suggestion.Material, u *unstructured.Unstructured) suggestion.Material {
	switch u.GetKind() {
	case "Composition":
		m.Compositions = append(m.Compositions, u)
	case "CompositeResourceDefinition":
		m.Definitions = append(m.Definitions, u)
	case "CustomResourceDefinition":
		m.Kinds = append(m.Kinds, u)
	}

	return m
}

func TestNamesAreValidUniqueAndAlwaysTheSame(t *testing.T) {
	long := strings.Repeat("veryLongName", 30)
	m := materialOf(t, composing(strings.Join([]string{
		"{fromFieldPath: spec.a.b, toFieldPath: spec.forProvider.tags.x}",
		"{fromFieldPath: spec.aB, toFieldPath: spec.forProvider.tags.y}",
		`{fromFieldPath: "spec.a[b]", toFieldPath: spec.forProvider.tags.z}`,
		"{fromFieldPath: spec.ab, toFieldPath: spec.forProvider.tags.q}",
		"{fromFieldPath: spec." + long + ", toFieldPath: spec.forProvider.tags.l}",
	}, ", ")), thing, instance)
	o := options()
	o.Prefix = "team-a."

	names := map[string]bool{}

	for range 2 {
		s, err := suggestion.Suggest(m, o)
		if err != nil {
			t.Fatal(err)
		}

		for i, p := range s.Policies {
			name := p.Policy.Name
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || !strings.HasPrefix(name, "team-a.things-thing-") {
				t.Errorf("%q: %v", name, errs)
			}

			if names[name] && i < len(names) && len(names) != len(s.Policies) {
				t.Errorf("%q is there twice", name)
			}

			names[name] = true
		}

		if len(names) != len(s.Policies) {
			t.Errorf("%d names of %d policies", len(names), len(s.Policies))
		}
	}
}

func TestManyFieldsFitIntoPolicies(t *testing.T) {
	patches := make([]string, 0, 300)
	for i := range 150 {
		patches = append(patches, fmt.Sprintf("{fromFieldPath: spec.f%d, toFieldPath: spec.forProvider.size}", i),
			fmt.Sprintf("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.tags.t%d}", i))
	}

	s, _ := suggest(t, materialOf(t, composing(strings.Join(patches, ", ")), instance), options())

	for _, p := range s.Policies {
		if n := len(p.Policy.Spec.Match.Fields); n > 64 {
			t.Errorf("%s has %d fields", p.Policy.Name, n)
		}

		for _, a := range p.Policy.Spec.Allow {
			if len(a.Mutations) > 64 {
				t.Errorf("%s has %d mutations", p.Policy.Name, len(a.Mutations))
			}
		}
	}
}

func TestWhatStepsDoIsToldApart(t *testing.T) {
	pipeline := func(steps string) string {
		return "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: " +
			"{compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, mode: Pipeline, pipeline: [" + steps + "]}}"
	}

	const patches = "{step: one, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
		"[{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}]}]}}"

	const started = "Thing [spec.size]: platform-team crossplane -> Instance [spec.forProvider.size] External [Update]\n"

	for name, tc := range map[string]struct{ reason, given, policies, problems string }{
		"Quiet": {
			reason: "Some functions are known to compose nothing.",
			given: pipeline("{step: env, functionRef: {name: e}, input: {apiVersion: environmentconfigs.fn.crossplane.io/v1beta1, kind: Input}}, " + patches +
				", {step: ready, functionRef: {name: crossplane-contrib-function-auto-ready}}, {step: k, functionRef: {name: function-kausality}}, " +
				"{step: k2, functionRef: {name: other}, input: {apiVersion: kausality.io/v1alpha1, kind: Input}}"),
			policies: started,
		},
		"Other": {
			reason: "Of others nobody knows.", given: pipeline(patches + ", {step: two, functionRef: {name: function-kcl}}"), policies: started,
			problems: "Composition things: step two: what function-kcl makes of the XR's fields is not known: " +
				"run it with mode Audit and see with --held, or write policies for it\n",
		},
		"PatchedTwice": {
			reason: "A step without a base patches what one before it made.",
			given: pipeline(patches + ", {step: two, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
				"[{name: db, patches: [{fromFieldPath: spec.color, toFieldPath: spec.forProvider.zone}]}, {name: other, patches: []}]}}"),
			policies: started + "Thing [spec.color]: platform-team crossplane -> Instance [spec.forProvider.zone] External [Update]\n",
			problems: "Composition things: step two: resource other: it has no base, and no step before makes it that can be followed: its kind is not known\n",
		},
		"MadeTwice": {
			reason: "One with a base makes it anew.",
			given: pipeline(patches + ", {step: two, functionRef: {name: p}, input: {apiVersion: pt.fn.crossplane.io/v1beta1, kind: Resources, resources: " +
				"[{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.color, toFieldPath: spec.forProvider.size}]}]}}"),
			policies: strings.Replace(started, "spec.size", "spec.color", 1),
		},
		"Resources": {
			reason: "Compositions without a pipeline are followed, too.",
			given: "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing}, " +
				"patchSets: [{name: s, patches: [{type: FromCompositeFieldPath, fromFieldPath: spec.size, toFieldPath: spec.forProvider.size, policy: {mergeOptions: {appendSlice: true}}}]}], " +
				"resources: [{base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{type: PatchSet, patchSetName: s}, " +
				"{type: ToCompositeFieldPath, fromFieldPath: status.atProvider.id, toFieldPath: spec.color}]}]}}",
			policies: started,
			problems: "Composition things: resource resources[0]: patches[1]: it writes spec.color of the XR, which nobody's change leads to: it is not followed\n",
		},
		"Nothing": {
			reason: "One that composes nothing is told.", given: pipeline(""), problems: "Composition things: it has neither a pipeline nor resources\n",
		},
		"NotDefined": {
			reason:   "What is composed may be an XR.",
			given:    pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: Item"), "forProvider", "parameters")),
			policies: "Thing [spec.size]: platform-team crossplane -> Item [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: it is not known whether Item.other.example.org is an XR, which composes something itself: " +
				"give its CustomResourceDefinition, or its CompositeResourceDefinition and Composition\n",
		},
		"NoComposition": {
			reason: "An XR without its Composition ends the way.",
			given: pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: Item"), "forProvider", "parameters")) +
				"\n---\n{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: items.other.example.org}, spec: " +
				"{group: other.example.org, names: {kind: Item}, claimNames: {kind: ItemClaim}}}",
			policies: "Thing [spec.size]: platform-team crossplane -> Item [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: Item is an XR, and its Composition is not there: what it composes is not followed\n",
		},
		"Claim": {
			reason: "So does a Claim.",
			given: pipeline(strings.ReplaceAll(strings.ReplaceAll(patches, "rds.example.org/v1, kind: Instance", "other.example.org/v1, kind: ItemClaim"), "forProvider", "parameters")) +
				"\n---\n{apiVersion: apiextensions.crossplane.io/v2, kind: CompositeResourceDefinition, metadata: {name: items.other.example.org}, spec: " +
				"{group: other.example.org, names: {kind: Item}, claimNames: {kind: ItemClaim}}}",
			policies: "Thing [spec.size]: platform-team crossplane -> ItemClaim [spec.parameters.size]\n",
			problems: "Composition things: step one: resource db: ItemClaim is a Claim: what its XR composes is not followed; suggest policies for that Composition, too\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Create = false
			m := materialOf(t, tc.given, thing)
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

func TestSeveralCompositionsOfANestedXR(t *testing.T) {
	const outer = `{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing},
  resources: [{name: item, base: {apiVersion: example.org/v1, kind: Item, spec: {REF}}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.size}]}]}}`

	inner := func(name, field string) string {
		return "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: " + name + "}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Item}, " +
			"resources: [{name: db, base: {apiVersion: rds.example.org/v1, kind: Instance}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.forProvider." + field + "}]}]}}"
	}

	const first = "Thing [spec.size]: platform-team crossplane -> Item [spec.size]\n"

	for name, tc := range map[string]struct{ reason, ref, policies, problems string }{
		"Unknown": {
			reason: "Which one is taken cannot be known.", policies: first,
			problems: "Composition things: resource item: Item is an XR, and there are 2 Compositions for it: which one is taken is not known, and what it " +
				"composes is not followed; give one of them, or suggest policies for each\n",
		},
		"Named": {
			reason: "The base may say so.", ref: "crossplane: {compositionRef: {name: b}}",
			policies: first + "Item [spec.size]: crossplane -> Instance [spec.forProvider.large] External [Update]\n",
		},
		"Gone": {
			reason: "The one that it names may not be there.", ref: "compositionRef: {name: c}", policies: first,
			problems: "Composition things: resource item: Item is an XR, and its Composition c is not there: what it composes is not followed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Create = false
			s, _ := suggest(t, materialOf(t, strings.Replace(outer, "REF", tc.ref, 1), inner("a", "small"), inner("b", "large"), thing), o)

			if diff := cmp.Diff(tc.policies, short(s)); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, lines(texts(s.Problems))); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnXRThatComposesItselfIsFollowedOnce(t *testing.T) {
	o := options()
	o.Create = false
	s, _ := suggest(t, materialOf(t, `{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: things}, spec: {compositeTypeRef: {apiVersion: example.org/v1, kind: Thing},
  resources: [{name: again, base: {apiVersion: example.org/v1, kind: Thing}, patches: [{fromFieldPath: spec.size, toFieldPath: spec.size}]}]}}`, thing), o)

	const want = "Composition things: resource again: it is an XR with the same Composition things again, which is followed once\n"
	if diff := cmp.Diff(want, lines(texts(s.Problems))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestTheSubjectToReplaceLetsNobodyIn(t *testing.T) {
	m := materialOf(t, composing("{fromFieldPath: spec.size, toFieldPath: spec.forProvider.size}"), thing, instance)
	o := options()
	o.Subjects = nil

	_, policies := suggest(t, m, o)
	for _, p := range policies {
		for _, u := range []policy.User{hans(), anna(), machine(), {Name: "system:admin", Groups: []string{"system:masters"}}} {
			if policy.MayInitiate(p.Spec().Subjects, u) {
				t.Errorf("%s lets %s initiate", p.Name(), u.Name)
			}
		}

		if fields := p.Spec().Match.Fields; !strings.Contains(fmt.Sprint(p.Spec().Subjects), "REPLACE-ME") {
			t.Errorf("%v: nothing says that somebody is to be named", fields)
		}
	}
}
