// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A seenXR is an XR as one run of the function has it, and what is held then.
type seenXR struct {
	generation int64
	size       string
	// edited is the user of an edit that is recorded, and allowed the generation of a change that the
	// trace tells of; empty, or zero, for none.
	edited  string
	allowed int64
	// crossplanes is what Crossplane writes of it.
	crossplanes string
	// held is the value of the one change that is held; empty for none.
	held string
	// ungoverned is true where no policy is about it, failed where the pipeline has failed before, and composed
	// of an XR that another one composes.
	ungoverned, failed, composed bool
	// backups is true where a default is stored that the definition did not have before.
	backups bool
	// masked is true where the value of what is held is hidden.
	masked bool
	// settled is the generation at which all was settled last, where that is said; negative where something else is.
	settled int64
	// want is the cause of what is held, and its user.
	want string
}

func (s seenXR) xr(t *testing.T) *unstructured.Unstructured {
	t.Helper()

	u := object(t, `{apiVersion: example.org/v1, kind: Database, metadata: {name: db, namespace: team-a, annotations: {}},
		spec: {size: `+s.size+`, password: none, crossplane: {compositionRevisionRef: {name: r1}, resourceRefs: [`+s.crossplanes+`]}}}`)
	u.SetGeneration(s.generation)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "example.org/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec": {"f:size": {}, "f:password": {}, "f:crossplane": {"f:compositionRevisionRef": {"f:name": {}}, "f:resourceRefs": {}}}}`),
	}})

	if s.backups {
		resource.Map(u.Object, "spec")["backups"] = true
	}

	if s.composed {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Stack", Name: "stack", UID: "stack", Controller: new(true)}})
	}

	annotations := map[string]string{}

	if s.edited != "" {
		annotations[v1alpha1.AnnotationHeld] = "- {field: spec.size, from: small, cause: {type: Edit, user: " + s.edited + ", since: '2026-01-01T00:00:00Z'}, stored: {}}"
	}

	if s.allowed > 0 {
		annotations[v1alpha1.AnnotationTrace] = strings.ReplaceAll("- {field: spec.size, generation: G, initiator: hans, "+
			"trace: [{kind: Database, name: db, generation: G, field: spec.size}]}", "G", string(rune('0'+s.allowed)))
	}

	u.SetAnnotations(annotations)

	return u
}

// TestAnEditThatNobodySawIsOfSomebodyUnknown run by run, each of which has what the one before said.
func TestAnEditThatNobodySawIsOfSomebodyUnknown(t *testing.T) {
	first := seenXR{generation: 1, size: "small"}

	for name, tc := range map[string]struct {
		reason string
		runs   []seenXR
	}{
		"Unseen": {
			reason: "The spec is another one, and nothing says whose.",
			runs: []seenXR{
				first,
				{generation: 2, size: "huge", held: "huge", want: "Edit unknown"},
				{generation: 2, size: "huge", held: "huge", want: "Edit unknown"},
				{generation: 2, size: "huge"},
				{generation: 2, size: "huge", held: "other", want: "Pipeline"},
			},
		},
		"TakenBack": {
			reason: "What is as it was nobody has edited.",
			runs: []seenXR{
				first, {generation: 2, size: "huge", held: "huge", want: "Edit unknown"}, {generation: 3, size: "small", held: "other", want: "Pipeline"},
			},
		},
		"AndMoreIsAllowedSince": {
			reason: "That says nothing of the edit before.",
			runs: []seenXR{
				first, {generation: 2, size: "huge", held: "huge", want: "Edit unknown"}, {generation: 3, size: "larger", allowed: 3, held: "larger", want: "Edit unknown"},
			},
		},
		"AndMoreIsEditedSince": {
			reason: "Who edits it then is one of two.",
			runs: []seenXR{
				first, {generation: 2, size: "huge", held: "huge", want: "Edit unknown"}, {generation: 3, size: "larger", edited: "anna", held: "larger", want: "Edit unknown"},
			},
		},
		"Allowed": {
			reason: "The trace says whose it is: nothing that is held follows from it.",
			runs:   []seenXR{first, {generation: 2, size: "huge", allowed: 2, held: "other", want: "Pipeline"}},
		},
		"Recorded": {
			reason: "So does the record of edits, also once the edit is taken back.",
			runs: []seenXR{
				first, {generation: 2, size: "huge", edited: "anna", held: "huge", want: "Edit anna"}, {generation: 3, size: "small", held: "other", want: "Pipeline"},
			},
		},
		"HeldBefore": {
			reason: "Who edits it does not ask for what was held before.",
			runs: []seenXR{
				{generation: 1, size: "small", held: "other", want: "Pipeline"},
				{generation: 2, size: "huge", edited: "anna", held: "other", want: "Pipeline"},
				{generation: 2, size: "huge", edited: "anna", held: "other", want: "Pipeline"},
				{generation: 2, size: "huge", edited: "anna", held: "another", want: "Edit anna"},
			},
		},
		"TakenBackToWhatWasAllowedMeanwhile": {
			reason: "There is not a run for each generation: who may has made it huge, and somebody else has taken back what they made of that.",
			runs: []seenXR{
				first, {generation: 3, size: "small", edited: "anna", allowed: 2, held: "other", want: "Edit anna"}, {generation: 4, size: "huge", allowed: 2, held: "huge", want: "Pipeline"},
			},
		},
		"Approved": {
			reason: "What was recorded is forgotten once it is approved, and counts from then on.",
			runs: []seenXR{
				first,
				{generation: 2, size: "huge", edited: "anna", held: "huge", want: "Edit anna"},
				{generation: 2, size: "huge"},
				{generation: 3, size: "small", held: "small", want: "Edit unknown"},
			},
		},
		"ByCrossplane": {
			reason: "What it records of an XR is no edit.",
			runs:   []seenXR{first, {generation: 2, size: "small", crossplanes: "{kind: A}", held: "other", want: "Pipeline"}},
		},
		"WithoutAnotherGeneration": {
			reason: "It is a default, or another version of the API.",
			runs:   []seenXR{first, {generation: 1, size: "medium", held: "other", want: "Pipeline"}, {generation: 2, size: "huge", held: "huge", want: "Edit unknown"}},
		},
		"Composed": {
			reason: "What another XR composes Crossplane writes, and of nobody's edits of it is a record where that is not asked.",
			runs:   []seenXR{{generation: 1, size: "small", composed: true}, {generation: 2, size: "huge", held: "huge", composed: true, want: "Pipeline"}},
		},
		"Defaulted": {
			reason: "A new version of its definition has a default for it, and a new version of its Composition asks for more.",
			runs:   []seenXR{first, {generation: 2, size: "small", backups: true, held: "other", want: "Pipeline"}},
		},
		"FirstSeenWhileAnEditIsRecorded": {
			reason: "What it was before is not known.",
			runs: []seenXR{
				{generation: 2, size: "huge", edited: "anna", held: "huge", want: "Edit anna"},
				{generation: 3, size: "small", held: "other", want: "Pipeline"},
				{generation: 4, size: "huge", held: "huge", want: "Edit unknown"},
			},
		},
		"Masked": {
			reason: "Its digest says nothing of its value: it may be another one than was held before.",
			runs: []seenXR{
				first,
				{generation: 1, size: "small", held: "hidden", masked: true, want: "Pipeline"},
				{generation: 2, size: "huge", edited: "anna", held: "hidden", masked: true, want: "Edit anna"},
			},
		},
		"WrittenByCrossplaneSince": {
			reason: "What follows from an edit follows from it though Crossplane has written the XR once more.",
			runs:   []seenXR{first, {generation: 3, size: "huge", allowed: 2, settled: 1, held: "huge", want: "Edit hans"}},
		},
		"SettledNobodyKnowsWhen": {
			reason: "Then an edit of before is none that what is held follows from.",
			runs: []seenXR{
				first,
				{generation: 3, size: "huge", allowed: 2, settled: -1, held: "other", want: "Pipeline"},
				{generation: 3, size: "huge", allowed: 3, settled: -1, held: "another", want: "Edit hans"},
			},
		},
		"Ungoverned": {
			reason: "Of what no policy is about nobody records who edits it.",
			runs:   []seenXR{first, {generation: 2, size: "huge", held: "huge", ungoverned: true, want: "Pipeline"}},
		},
		"NotKnownBefore": {
			reason: "Of the first run, and of one after a pipeline that failed, nobody knows what was before.",
			runs:   []seenXR{{generation: 1, size: "small", held: "other", want: "Pipeline"}, {generation: 2, size: "huge", held: "huge", failed: true, want: "Pipeline"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := v1alpha1.State{}

			for i, run := range tc.runs {
				xr := run.xr(t)

				var conditions []any

				if said.V != 0 {
					status := "False"
					if run.failed {
						status = "Unknown"
					}

					said.Progress.Settled.Generation = max(cmp.Or(run.settled, run.generation), 0)
					conditions = append(conditions, map[string]any{"type": v1alpha1.ConditionState, "status": status, "message": resource.FormatState(said)})
				}

				xr.Object["status"] = map[string]any{"conditions": conditions}

				var held []condition.Held
				if run.held != "" {
					held = append(held, condition.Held{Change: v1alpha1.HeldChange{
						Field: "spec.a", To: run.held, Masked: run.masked, Digest: "sha256:" + run.held,
					}})
				}

				progress := v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: run.generation}
				list := condition.List(xr, &condition.Status{Progress: progress}, nil, held, nil, !run.ungoverned)

				got := ""
				for _, e := range list.Changes {
					got = strings.TrimSpace(string(e.Cause.Type) + " " + e.Cause.User)
				}

				if got != run.want {
					t.Errorf("%s\nrun %d: the cause is %q, want %q", tc.reason, i, got, run.want)
				}

				said = list
				said.V = v1alpha1.RecordVersion
			}
		})
	}
}

// TestWhatIsHiddenOfASpecIsNotHashed for it could be guessed.
func TestWhatIsHiddenOfASpecIsNotHashed(t *testing.T) {
	said := func(password string) string {
		xr := seenXR{generation: 1, size: "small"}.xr(t)
		resource.Map(xr.Object, "spec")["password"] = password

		return condition.List(xr, &condition.Status{}, nil, nil, nil, true).Spec
	}

	if a, b := said("a"), said("b"); a != b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}
