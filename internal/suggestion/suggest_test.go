// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

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
