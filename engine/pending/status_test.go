// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var (
	noon   = time.Date(2026, time.March, 4, 12, 0, 0, 123, time.UTC)
	atNoon = metav1.NewTime(noon.Truncate(time.Second))
	before = metav1.NewTime(noon.Add(-time.Hour).Truncate(time.Second))
)

// sha is a digest that is easily recognized.
func sha(text string) string { return digest.Prefix + strings.Repeat("0", 64-len(text)) + text }

// claim is the root of most tests, xr its XR, and db what that composes.
func claim(t *testing.T, annotations string) *unstructured.Unstructured {
	t.Helper()

	return fixture.Parse(t, "{apiVersion: example.org/v1, kind: Store, metadata: {name: corner, namespace: team-a, uid: claim"+annotations+"}, "+
		"spec: {resourceRef: {apiVersion: example.org/v1, kind: XStore, name: corner-x}}}")
}

func xr(t *testing.T, annotations string, condition *v1alpha1.State) *unstructured.Unstructured {
	t.Helper()

	u := fixture.Parse(t, "{apiVersion: example.org/v1, kind: XStore, metadata: {name: corner-x, uid: xr"+annotations+"}, spec: {claimRef: "+
		"{apiVersion: example.org/v1, kind: Store, namespace: team-a, name: corner}}}")
	if condition != nil {
		say(u, "False", "Held", resource.FormatState(*condition))
	}

	return u
}

// ofGeneration is an XR at a generation.
func ofGeneration(n int64, u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetGeneration(n)

	return u
}

func database(t *testing.T, annotations string) *unstructured.Unstructured {
	t.Helper()

	return fixture.Parse(t, "{apiVersion: rds.example.org/v1, kind: Instance, metadata: {name: corner-db, uid: db"+annotations+"}, spec: {forProvider: {}}}")
}

// say sets the condition that has an XR's list.
func say(u *unstructured.Unstructured, status, reason, message string) {
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": v1alpha1.ConditionState, "status": status, "reason": reason, "message": message,
	}}}
}

func annotated(key, value string) string {
	raw, _ := json.Marshal(value) //nolint:errchkjson // It is text.

	return fmt.Sprintf(", annotations: {%s: %s}", key, raw)
}

func held(list ...v1alpha1.HeldChange) string {
	return annotated(v1alpha1.AnnotationHeld, allowance.FormatList(list))
}

func edits(list ...v1alpha1.HeldChange) string {
	return annotated(v1alpha1.AnnotationHeld, allowance.FormatList(list))
}

func below(u, parent *unstructured.Unstructured) pending.Object {
	ref := pending.RefTo(parent)

	return pending.Object{Unstructured: u, Parent: &ref}
}

// instance is an entry of an XR's list about the database.
func instance(field, from, to string) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Ref:              v1alpha1.ObjectReference{APIVersion: "rds.example.org/v1", Kind: "Instance", Name: "corner-db", UID: "db"},
		ComposedResource: "db", Field: field, From: from, To: to, Digest: sha("a"), Follows: []string{"Update"},
	}
}

// short says what matters of an entry: TYPE USER FIELD FROM>TO and more.
func short(e v1alpha1.HeldChange) string {
	out := fmt.Sprintf("%s %s: %s %s %s>%s", e.Cause.Type, e.Cause.User, e.Ref.Name, e.Field, e.From, e.To)
	if e.Parent != nil {
		out += " of " + e.Parent.Name
	}

	if e.ComposedResource != "" {
		out += " as " + e.ComposedResource
	}

	if e.Destroys {
		out += " destroys"
	}

	if len(e.Follows) > 0 {
		out += " follows " + strings.Join(e.Follows, ",")
	}

	if e.Digest == "" {
		out += " without digest"
	}

	if !e.Cause.Since.Equal(&atNoon) {
		out += " since " + e.Cause.Since.UTC().Format(time.TimeOnly)
	}

	return out
}

func TestWhatIsHeldIsListed(t *testing.T) {
	size := v1alpha1.HeldChange{Field: "spec.size", From: "small", To: "large", Missing: "r", Digest: sha("b")}
	hands := v1alpha1.HeldChange{Field: "spec.forProvider.size", From: "1", To: "2", Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: "eve"}, Missing: "r", Digest: sha("c")}
	anna := v1alpha1.HeldChange{Field: "spec.size", Cause: by("anna", metav1.NewTime(noon.Add(-time.Hour))), Stored: &v1alpha1.StoredChange{}}
	bert := v1alpha1.HeldChange{Field: "spec.color", Cause: by("bert", metav1.NewTime(noon.Add(-time.Minute))), Stored: &v1alpha1.StoredChange{}}
	list := &v1alpha1.State{Changes: []v1alpha1.HeldChange{instance("spec.forProvider.size", "1", "3")}}

	with := func(e v1alpha1.HeldChange, change func(*v1alpha1.HeldChange)) *v1alpha1.State {
		change(&e)

		return &v1alpha1.State{Changes: []v1alpha1.HeldChange{e}}
	}
	failing := func() *unstructured.Unstructured {
		u := xr(t, "", nil)
		say(u, "Unknown", "FatalError", "a step of the pipeline failed")

		return u
	}
	kept := func() v1alpha1.PendingChangeStatus {
		e := instance("spec.forProvider.size", "1", "3")
		e.Parent = &v1alpha1.ObjectReference{APIVersion: "example.org/v1", Kind: "XStore", Name: "corner-x", UID: "xr"}
		e.Cause = &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Since: &before}

		return v1alpha1.PendingChangeStatus{Changes: []v1alpha1.HeldChange{e}, Total: 3, Requesters: []string{"carla"}, FinishedAt: nil}
	}

	cases := map[string]struct {
		claim, xr, db *unstructured.Unstructured
		previous      v1alpha1.PendingChangeStatus
		gone          []pending.Key
		want          []string
		total         int32
		destroys      int32
		requesters    []string
		required      int32
		stale         bool
	}{
		"Nothing is held": {claim: claim(t, ""), xr: xr(t, "", &v1alpha1.State{}), db: database(t, ""), required: 1},
		"What an XR lists follows from its pipeline": {
			claim: claim(t, ""), xr: xr(t, "", list), want: []string{"Pipeline : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, required: 1,
		},
		"Below an edited Claim it follows from the newest edit": {
			claim: claim(t, edits(bert, anna)), xr: xr(t, "", list),
			want: []string{"Edit bert: corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, requesters: []string{"anna", "bert"}, required: 1,
		},
		"A cause that the function knows stays": {
			claim: claim(t, edits(anna)), xr: xr(t, "", with(instance("f", "", ""), func(e *v1alpha1.HeldChange) {
				e.Cause = &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Revision: "r-2"}
			})),
			want: []string{"Composition : corner-db f > of corner-x as db follows Update"}, total: 1, requesters: []string{"anna"}, required: 1,
		},
		"Edits of nobody knows whom take one more": {
			claim: claim(t, edits(v1alpha1.HeldChange{Field: "spec.size", Cause: by("(unknown)", before), Stored: &v1alpha1.StoredChange{}})), xr: xr(t, "", list),
			want: []string{"Edit unknown: corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, requesters: []string{"unknown"}, required: 2,
		},
		"So does a record of edits that nobody can read": {
			claim: claim(t, annotated(v1alpha1.AnnotationHeld, "{")), xr: xr(t, "", list),
			want: []string{"Edit unknown: corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, requesters: []string{"unknown"}, required: 2,
		},
		"So do those that the record has no room for": {
			claim: claim(t, edits(v1alpha1.HeldChange{Field: "(more)", Cause: by("anna", before), Stored: &v1alpha1.StoredChange{}})), xr: xr(t, "", list),
			want: []string{"Edit anna: corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, requesters: []string{"anna", "unknown"}, required: 2,
		},
		"And those of somebody whose name was cut": {
			claim: claim(t, edits(v1alpha1.HeldChange{Field: "spec.size", Cause: by(strings.Repeat("a", 125)+"...", before), Stored: &v1alpha1.StoredChange{}})), xr: xr(t, "", &v1alpha1.State{}),
			requesters: []string{strings.Repeat("a", 125) + "...", "unknown"}, required: 2,
		},
		"An XR's own is its Claim's, and was asked for by who edited that": {
			claim: claim(t, edits(anna, bert)), xr: xr(t, held(v1alpha1.HeldChange{Field: "spec.size", From: "small", To: "large", Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: "anna"}, Missing: "r", Digest: sha("b")}), nil),
			want: []string{"Edit anna: corner-x spec.size small>large of corner"}, total: 1, requesters: []string{"anna", "bert"}, required: 1,
		},
		"By somebody unknown where no edit is recorded": {
			claim: claim(t, ""), xr: xr(t, held(size), nil), want: []string{"Edit unknown: corner-x spec.size small>large of corner"}, total: 1, requesters: []string{"unknown"}, required: 2,
		},
		"What is held of the root itself nobody can approve": {
			claim: claim(t, held(v1alpha1.HeldChange{Field: "spec.size", From: "small", To: "large", Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: "anna"}, Missing: "r", Digest: sha("b")})),
			want:  []string{"Edit anna: corner spec.size small>large without digest"}, total: 1, requesters: []string{"anna"}, required: 1,
		},
		"What is composed and was edited by hand is drift, and its user asks": {
			claim: claim(t, ""), xr: xr(t, "", &v1alpha1.State{}), db: database(t, held(hands)),
			want: []string{"Drift eve: corner-db spec.forProvider.size 1>2 of corner-x"}, total: 1, requesters: []string{"eve"}, required: 1,
		},
		"An update below forProvider of what has a gate follows outside": {
			claim: claim(t, ""), xr: xr(t, "", nil), db: database(t, fmt.Sprintf(", annotations: {%s: %q, %s: %q}", v1alpha1.AnnotationHeld,
				allowance.FormatList([]v1alpha1.HeldChange{hands, {Field: "spec.forProviders", Missing: "r", Digest: sha("d")}}),
				v1alpha1.AnnotationGate, "{v: 1, state: Closed, generation: 1, since: \"2026-01-01T00:00:00Z\"}")),
			want:  []string{"Drift eve: corner-db spec.forProvider.size 1>2 of corner-x follows Update", "Pipeline : corner-db spec.forProviders > of corner-x"},
			total: 2, requesters: []string{"eve"}, required: 1,
		},
		"Of equal digests the XR's list says more, but who asked by hand": {
			claim: claim(t, ""), xr: xr(t, "", list), db: database(t, held(v1alpha1.HeldChange{Field: "spec.forProvider.size", From: "1", To: "3", Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: "eve"}, Missing: "r", Digest: sha("a")})),
			want: []string{"Drift eve: corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, requesters: []string{"eve"}, required: 1,
		},
		"A record without digest is one with what the list says of the field": {
			claim: claim(t, ""), xr: xr(t, "", list), db: database(t, held(v1alpha1.HeldChange{Field: "spec.forProvider.size", From: "1", To: "3", Missing: "r"})),
			want: []string{"Pipeline : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update"}, total: 1, required: 1,
		},
		"What did not fit is counted": {
			claim: claim(t, held(size, v1alpha1.HeldChange{Field: "(12 more)", Missing: "too many to list"})), xr: xr(t, "", &v1alpha1.State{More: 4}),
			db:   database(t, held(hands, v1alpha1.HeldChange{Field: "(7 more)", Missing: "too many to list"})),
			want: []string{"Edit unknown: corner spec.size small>large without digest", "Drift eve: corner-db spec.forProvider.size 1>2 of corner-x"}, total: 2 + 12 + 4, requesters: []string{"eve", "unknown"}, required: 2,
		},
		"What destroys something comes first, whatever it is": {
			claim: claim(t, ""), xr: xr(t, "", &v1alpha1.State{Changes: []v1alpha1.HeldChange{
				instance("a", "", ""), {Ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "z", UID: "z"}, Field: "delete", Digest: sha("f"), Destroys: true},
			}}),
			want: []string{"Pipeline : z delete > of corner-x destroys", "Pipeline : corner-db a > of corner-x as db follows Update"}, total: 2, destroys: 1, required: 1,
		},
		"Since when it is held is known from before": {
			claim: claim(t, ""), xr: xr(t, "", list), previous: kept(),
			want: []string{"Pipeline : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 1, required: 1,
		},
		"What an XR has listed stays while its pipeline fails, and so does its number": {
			claim: claim(t, ""), xr: failing(), previous: kept(), stale: true,
			want: []string{"Composition : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 3, requesters: []string{"carla"}, required: 1,
		},
		"So it does where its condition is not there any more": {
			claim: claim(t, ""), xr: xr(t, "", nil), previous: kept(), stale: true,
			want: []string{"Composition : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 3, requesters: []string{"carla"}, required: 1,
		},
		"And what its resources say of it says less": {
			claim: claim(t, ""), xr: failing(), db: database(t, held(v1alpha1.HeldChange{Field: "spec.forProvider.size", From: "1", To: "3", Missing: "r", Digest: sha("a")})), previous: kept(), stale: true,
			want: []string{"Composition : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 3, requesters: []string{"carla"}, required: 1,
		},
		"It goes with the object, whatever the pipeline does": {
			claim: claim(t, ""), xr: failing(), previous: kept(), gone: []pending.Key{pending.KeyOf(kept().Changes[0].Ref)}, stale: true, total: 2, requesters: []string{"carla"}, required: 1,
		},
		"It goes with its XR": {
			claim: claim(t, ""), previous: kept(), gone: []pending.Key{pending.KeyOf(*kept().Changes[0].Parent)}, required: 1,
		},
		"It stays where its XR could not be read": {
			claim: claim(t, ""), previous: kept(),
			want: []string{"Composition : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 1, required: 1,
		},
		"It stays while the list is of the XR as it was before": {
			claim: claim(t, ""), xr: ofGeneration(4, xr(t, "", &v1alpha1.State{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 3}})), previous: kept(),
			want: []string{"Composition : corner-db spec.forProvider.size 1>3 of corner-x as db follows Update since 11:00:00"}, total: 3, required: 1,
		},
		"It goes once a list of the XR as it is says so": {
			claim: claim(t, ""), xr: ofGeneration(4, xr(t, "", &v1alpha1.State{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 4}})), previous: kept(), required: 1,
		},
		"It goes once the list says so": {claim: claim(t, ""), xr: xr(t, "", &v1alpha1.State{}), previous: kept(), required: 1},
		"It goes once the function does not run any more": {
			claim: claim(t, ""), xr: func() *unstructured.Unstructured {
				u := xr(t, "", list)
				status := resource.Map(u.Object, "status")
				status["conditions"] = append(resource.List(status, "conditions"), map[string]any{"type": "Kausality", "status": "Unknown", "reason": "NotRun"})

				return u
			}(), previous: kept(), required: 1,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := pending.Input{Root: tc.claim, Objects: []pending.Object{{Unstructured: tc.claim}}, Previous: tc.previous, Gone: map[pending.Key]bool{}, Now: noon}
			if tc.xr != nil {
				in.Objects = append(in.Objects, below(tc.xr, tc.claim))
			}

			if tc.db != nil {
				in.Objects = append(in.Objects, below(tc.db, tc.xr))
			}

			for _, key := range tc.gone {
				in.Gone[key] = true
			}

			got := pending.Status(in)

			lines, digests := make([]string, 0, len(got.Changes)), make([]string, 0, len(got.Changes))
			for _, e := range got.Changes {
				lines, digests = append(lines, short(e)), append(digests, e.Digest)
			}

			if diff := cmp.Diff(tc.want, lines, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("changes, -want, +got:\n%s", diff)
			}

			want := v1alpha1.PendingChangeStatus{
				Total: tc.total, Destroys: tc.destroys, Requesters: tc.requesters, Required: tc.required, Changes: got.Changes, Conditions: got.Conditions,
			}
			if len(digests) > 0 {
				want.Digest = digest.OfList(digests)
			}

			if tc.total == 0 {
				want.FinishedAt = &atNoon
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status, -want, +got:\n%s", diff)
			}

			if c := got.Conditions[0]; len(got.Conditions) != 1 || c.Type != v1alpha1.ConditionCurrent || (c.Status == metav1.ConditionFalse) != tc.stale ||
				tc.stale && (c.Reason != v1alpha1.ReasonPipelineFailed || !strings.Contains(c.Message, "XStore \"corner-x\"")) {
				t.Errorf("conditions %+v", got.Conditions)
			}
		})
	}
}

func TestValuesOfOtherNamespacesAreShownOnlyWhereThatIsSwitchedOn(t *testing.T) {
	root := claim(t, "")
	change := v1alpha1.HeldChange{Field: "spec.size", From: "small", To: "large", Missing: "r", Digest: sha("b")}
	at := func(namespace string) pending.Object {
		u := database(t, held(change))
		u.SetNamespace(namespace)
		u.SetUID(types.UID(namespace))

		return below(u, root)
	}

	cases := map[string]struct {
		namespace string
		show      bool
		want      string
	}{
		"In no namespace": {want: "small>large"},
		"In the root's":   {namespace: "team-a", want: "small>large"},
		"In another one":  {namespace: "team-b", want: "(not shown: in another namespace)>(not shown: in another namespace)"},
		"In another one, where it is to be shown": {namespace: "team-b", show: true, want: "small>large"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := pending.Input{Root: root, Objects: []pending.Object{{Unstructured: root}, at(tc.namespace)}, ShowForeign: tc.show, Now: noon}

			got := pending.Status(in)
			if len(got.Changes) != 1 || got.Changes[0].From+">"+got.Changes[0].To != tc.want || got.Changes[0].Digest != change.Digest {
				t.Errorf("%+v", got.Changes)
			}
		})
	}
}

func TestAConditionKeepsItsTimeUntilItChanges(t *testing.T) {
	was := []metav1.Condition{
		{Type: "Current", Status: "True", Reason: "Current", LastTransitionTime: before}, {Type: "Approved", Status: "False", Reason: "Waiting", LastTransitionTime: before},
	}

	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		want   metav1.Time
	}{
		"The same": {status: "True", reason: "Current", want: before}, "Another status": {status: "False", reason: "Current", want: atNoon},
		"Another reason": {status: "True", reason: "Other", want: atNoon},
	} {
		t.Run(name, func(t *testing.T) {
			list := append([]metav1.Condition{}, was...)
			pending.SetCondition(&list, metav1.Condition{Type: "Current", Status: tc.status, Reason: tc.reason, Message: "m"}, atNoon)

			want := []metav1.Condition{was[1], {Type: "Current", Status: tc.status, Reason: tc.reason, Message: "m", LastTransitionTime: tc.want}}
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestAStatusIsNeverTooLarge(t *testing.T) {
	cases := map[string]struct {
		n              int
		missing, value string
		left           int
		reasons        bool
		values         int
	}{
		"A few are whole":                    {n: 10, missing: "m", value: "v", left: 10, reasons: true, values: 1},
		"More than a hundred are counted":    {n: 250, missing: "m", value: "v", left: 100, reasons: true, values: 1},
		"Reasons go first":                   {n: 100, missing: strings.Repeat("m", 3000), value: strings.Repeat("v", 128), left: 100, values: 128},
		"Then long values":                   {n: 100, missing: "m", value: strings.Repeat("v", 3000), left: 100, values: 64},
		"Then changes, where names are long": {n: 100, missing: "m", value: "v", left: -1, values: 1},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, list := claim(t, ""), &v1alpha1.State{}

			for i := range tc.n {
				e := instance(fmt.Sprintf("spec.forProvider.f%03d", i), tc.value, tc.value)
				e.Digest, e.Missing = sha(strconv.Itoa(i)), tc.missing

				if tc.left < 0 {
					e.Field += strings.Repeat("x", 5000)
				}

				list.Changes = append(list.Changes, e)
			}

			list.V = v1alpha1.RecordVersion

			raw, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}

			above := xr(t, "", nil)
			say(above, "False", "Held", string(raw)) // Longer than any that is written.

			got := pending.Status(pending.Input{Root: root, Objects: []pending.Object{{Unstructured: root}, below(above, root)}, Now: noon})

			raw, err = json.Marshal(got.Changes)
			if err != nil || len(raw) > 256*1024 {
				t.Errorf("%d bytes (%v)", len(raw), err)
			}

			if int(got.Total) != tc.n || tc.left >= 0 && len(got.Changes) != tc.left || len(got.Changes) == 0 || tc.left < 0 && len(got.Changes) == tc.n {
				t.Errorf("%d of %d", len(got.Changes), got.Total)
			}

			if e := got.Changes[0]; (e.Missing != "") != tc.reasons || len(e.From) != tc.values || len(e.To) != tc.values {
				t.Errorf("missing %d, from %d, to %d", len(e.Missing), len(e.From), len(e.To))
			}
		})
	}
}

func TestNoMoreRequestersThanAStatusNames(t *testing.T) {
	list := make([]v1alpha1.HeldChange, 0, 80)
	for i := range 80 {
		list = append(list, v1alpha1.HeldChange{Field: fmt.Sprint("spec.f", i), Cause: by(fmt.Sprintf("user-%02d", i), before), Stored: &v1alpha1.StoredChange{}})
	}

	root := claim(t, edits(list...))

	got := pending.Status(pending.Input{Root: root, Objects: []pending.Object{{Unstructured: root}}, Now: noon})
	if len(got.Requesters) != 64 || got.Requesters[0] != pending.Unknown || got.Required != 2 {
		t.Errorf("%d of them, %q, %d required", len(got.Requesters), got.Requesters[0], got.Required)
	}
}
