// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const rolloutController = "system:serviceaccount:kube-system:deployment-controller"

// web is a Deployment at a generation, of which anna has edited the number of replicas.
func web(t *testing.T, generation int64, list ...v1alpha1.HeldChange) *unstructured.Unstructured {
	t.Helper()

	note := ""
	if len(list) > 0 {
		note = edits(list...)
	}

	u := fixture.Parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, uid: web"+note+"}, spec: {replicas: 3}}")
	u.SetGeneration(generation)

	return u
}

func byAnna() v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Field: "spec.replicas", From: "2", Cause: by("anna", before), Stored: &v1alpha1.StoredChange{}}
}

// refusedAt is a refusal of an object at a generation of the Deployment, some time before noon.
func refusedAt(name string, generation int64, ago time.Duration) v1alpha1.RefusedChange {
	at := metav1.NewTime(atNoon.Add(-ago))

	return v1alpha1.RefusedChange{
		Digest: sha(name), Ref: v1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "team-a", Name: name}, Field: "create",
		User: rolloutController, Message: "change not allowed", ParentGeneration: generation, Since: at, Last: at,
	}
}

func TestAnEditWaitsWhereWhatFollowsIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		root    *unstructured.Unstructured
		refused []v1alpha1.RefusedChange
		want    []string
		kept    int
	}{
		"Refused": {
			reason: "People approve the edit.", root: web(t, 4, byAnna()), refused: []v1alpha1.RefusedChange{refusedAt("a", 4, time.Minute)},
			want: []string{"Edit anna: web spec.replicas 2>3 of web"}, kept: 1,
		},
		"NotRefused": {reason: "What nobody refuses follows.", root: web(t, 4, byAnna())},
		"LongAgo": {
			reason: "A controller waits longer each time before it tries again.", root: web(t, 4, byAnna()),
			refused: []v1alpha1.RefusedChange{refusedAt("a", 4, time.Hour)}, want: []string{"Edit anna: web spec.replicas 2>3 of web"}, kept: 1,
		},
		"Before": {
			reason: "Of a generation before nobody tries again.", root: web(t, 5, byAnna()),
			refused: []v1alpha1.RefusedChange{refusedAt("a", 4, 11*time.Minute), refusedAt("b", 4, 9*time.Minute)},
			want:    []string{"Edit anna: web spec.replicas 2>3 of web"}, kept: 1,
		},
		"TakenBack": {
			reason: "There is nothing to approve.", root: web(t, 5), refused: []v1alpha1.RefusedChange{refusedAt("a", 4, time.Minute)},
		},
		"Unlisted": {
			reason: "What the record has no room for has no digest.", kept: 1,
			root:    web(t, 4, v1alpha1.HeldChange{Field: "(more)", Masked: true, Cause: by("anna", before), Stored: &v1alpha1.StoredChange{}}),
			refused: []v1alpha1.RefusedChange{refusedAt("a", 4, time.Minute)}, want: []string{"Edit anna: web (more) > of web without digest"},
		},
		"Destroys": {
			reason: "So does what it leads to.", root: web(t, 4, byAnna()), kept: 1,
			refused: []v1alpha1.RefusedChange{func() v1alpha1.RefusedChange {
				r := refusedAt("a", 4, time.Minute)
				r.Destroys = true

				return r
			}()}, want: []string{"Edit anna: web spec.replicas 2>3 of web destroys"},
		},
		"OfAnXR": {
			reason:  "What follows from an edit of Crossplane's is held, and approved as it is.",
			root:    xr(t, edits(byAnna()), nil),
			refused: []v1alpha1.RefusedChange{refusedAt("a", 4, time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := pending.Status(pending.Input{
				Root: tc.root, Objects: []pending.Object{{Unstructured: tc.root}}, Now: noon,
				Previous: v1alpha1.PendingChangeStatus{Refused: tc.refused},
			})

			got := make([]string, 0, len(status.Changes))

			for _, e := range status.Changes {
				text := short(e)
				got = append(got, text)
			}

			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || len(status.Refused) != tc.kept || (status.FinishedAt == nil) != (len(tc.want) > 0) {
				t.Errorf("%s\n-want, +got:\n%s%d are kept, finished at %v", tc.reason, diff, len(status.Refused), status.FinishedAt)
			}
		})
	}
}

func TestARefusalIsNotedOnce(t *testing.T) {
	var list []v1alpha1.RefusedChange

	at := noon
	refuse := func(r v1alpha1.RefusedChange) bool {
		noted := map[string]v1alpha1.RefusedChange{}
		for _, o := range list {
			noted[o.Digest] = o
		}

		known := pending.Noted(noted, r, at)

		var changed bool

		list, changed = pending.Refuse(list, r, at)
		if known && changed {
			t.Errorf("%s is noted, and changes the list", r.Ref.Name)
		}

		return changed
	}

	// 1. Once, and again for another generation, and after some minutes.
	if !refuse(refusedAt("a", 4, 0)) || refuse(refusedAt("a", 4, 0)) {
		t.Errorf("%+v", list)
	}

	if !refuse(refusedAt("a", 5, 0)) || refuse(refusedAt("a", 5, 0)) {
		t.Errorf("%+v", list)
	}

	at = at.Add(6 * time.Minute)
	if !refuse(refusedAt("a", 5, 0)) || !list[0].Since.Time.Equal(noon.Truncate(time.Second)) || list[0].Last.Sub(list[0].Since.Time) != 6*time.Minute {
		t.Errorf("%+v", list)
	}

	// 2. What is asked of the same object takes the place of what was.
	other := refusedAt("b", 5, 0)
	other.Ref.Name = "a"

	if !refuse(other) || len(list) != 1 || list[0].Digest != other.Digest {
		t.Errorf("%+v", list)
	}

	// 3. There is room for the newest.
	for i := range 2 * v1alpha1.MaxPendingRefused {
		at = at.Add(time.Second)
		refuse(refusedAt(strconv.Itoa(i), 5, 0))
	}

	if len(list) != v1alpha1.MaxPendingRefused || list[0].Ref.Name != strconv.Itoa(2*v1alpha1.MaxPendingRefused-1) ||
		slices.ContainsFunc(list, func(r v1alpha1.RefusedChange) bool { return r.Ref.Name == "a" }) {
		t.Errorf("%d are listed, the first is %s", len(list), list[0].Ref.Name)
	}
}

func TestWhatIsRefusedToAControllerBecauseOfAnEditIsNoted(t *testing.T) {
	var e v1alpha1.AllowancePolicy
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: scale}, spec: {match: {apiGroup: apps, kind: Deployment, fields: [spec.replicas]},
		subjects: [{kind: User, name: hans, mayInitiate: true}], allow: [{apiGroup: apps, kind: ReplicaSet, mutations: [spec.replicas]}]}}`), &e); err != nil {
		t.Fatal(err)
	}

	set, bad := policy.NewCache().Set([]v1alpha1.AllowancePolicy{e})
	if len(bad) > 0 {
		t.Fatal(bad)
	}

	child := func(replicas int) *unstructured.Unstructured {
		return fixture.Parse(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: team-a, uid: rs,
			ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]}, spec: {replicas: %d}}`, replicas))
	}

	for name, tc := range map[string]struct {
		reason string
		change func(*request.Request)
		want   bool
	}{
		"Controller": {reason: "It makes of the edit what nobody allowed.", want: true},
		"Person":     {reason: "The refusal tells them what to do.", change: func(r *request.Request) { r.User.Name = "anna" }},
		"DryRun":     {reason: "Nobody asks for it.", change: func(r *request.Request) { r.DryRun = true }},
		"NoEdit":     {reason: "There is nothing to approve.", change: func(r *request.Request) { r.Parent = web(t, 4) }},
		"Creation": {reason: "Its UID is another one with each try.", want: true, change: func(r *request.Request) {
			r.Operation, r.Old = request.OperationCreate, nil
		}},
		"OfAPart": {reason: "Its parent is made by another one, whose edit is approved.", change: func(r *request.Request) {
			r.Parent.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "App", Name: "a", UID: "a", Controller: new(true)}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			req := request.Request{
				Operation: request.OperationUpdate, Old: child(2), New: child(3), Parent: web(t, 4, byAnna()),
				User: policy.User{Name: rolloutController}, Action: v1alpha1.ActionDeny,
			}
			req.Basis.Policies = set

			if tc.change != nil {
				tc.change(&req)
			}

			req.Parent.SetAnnotations(builtUp(req.Parent.GetAnnotations()))

			d := decision.Decide(req)
			if d.Allowed() {
				t.Fatalf("%s\n%+v", tc.reason, d.Findings)
			}

			got, ok := pending.Refusal(&req, &d)
			if ok != tc.want {
				t.Fatalf("%s\n%+v", tc.reason, got)
			}

			if ok && (got.Digest == "" || got.Message == "" || got.User != rolloutController || got.ParentGeneration != 4 || (got.Ref.UID == "") != (req.Old == nil)) {
				t.Errorf("%s\n%+v", tc.reason, got)
			}
		})
	}
}

// builtUp are annotations of an object that is built up.
func builtUp(annotations map[string]string) map[string]string {
	out := map[string]string{v1alpha1.AnnotationInitialized: `{"v":1}`}
	maps.Copy(out, annotations)

	return out
}

// by is the cause of an edit of a user.
func by(user string, since metav1.Time) *v1alpha1.Cause {
	return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: user, Since: &since}
}
