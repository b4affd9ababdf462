// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestAnnotationsAreKeptFromOtherWriters(t *testing.T) {
	const (
		held  = v1alpha1.AnnotationHeld
		trace = v1alpha1.AnnotationTrace
		asked = v1alpha1.AnnotationManagementPolicies
		other = "example.org/a"
	)

	type m = map[string]string

	cases := map[string]struct {
		reason           string
		user             policy.User
		fixture          string
		old, obj, parent m
		create           bool
		want             m
		forged           []string
	}{
		"Untouched":    {reason: "What stays the same stays.", user: anna(), old: m{trace: "a", other: "x"}, obj: m{trace: "a", other: "y"}, want: m{trace: "a", other: "y"}},
		"Dropped":      {reason: "All that is dropped comes back, also as the only annotation.", user: crossplane(), old: m{trace: "a"}, obj: nil, want: m{trace: "a"}},
		"Emptied":      {reason: "Emptying is dropping.", user: anna(), old: m{trace: "a"}, obj: m{trace: ""}, want: m{trace: "a"}},
		"Added":        {reason: "A person who adds one is told.", user: anna(), obj: m{trace: "a"}, forged: []string{trace}},
		"AddedTwo":     {reason: "Of all of them, in order.", user: anna(), old: m{held: "x"}, obj: m{trace: "a", held: "b"}, want: m{held: "x"}, forged: []string{held, trace}},
		"FromParent":   {reason: "What the parent carries was copied, not made up.", user: anna(), parent: m{trace: "a"}, obj: m{trace: "a", other: "x"}, want: m{other: "x"}},
		"NotParents":   {reason: "What it does not carry was.", user: anna(), parent: m{trace: "a"}, obj: m{trace: "b"}, forged: []string{trace}},
		"AComponent":   {reason: "A component of Kubernetes is no person.", user: policy.User{Name: "system:kube-controller-manager"}, obj: m{trace: "a"}},
		"Future":       {reason: "The whole prefix is ours.", user: anna(), obj: m{"kausality.io/new": "a"}, forged: []string{"kausality.io/new"}},
		"Prefix":       {reason: "But not more than the prefix.", user: anna(), obj: m{"kausality.io.example/a": "b"}, want: m{"kausality.io.example/a": "b"}},
		"Manager":      {reason: "The manager writes what it likes.", user: policy.User{Name: managerUser}, old: m{trace: "a", held: "b"}, obj: m{trace: "c"}, want: m{trace: "c"}},
		"Asked":        {reason: "Crossplane says what the Composition of a managed resource asks for.", user: crossplane(), fixture: rdsInstance, old: m{asked: "a"}, obj: m{asked: "b"}, want: m{asked: "b"}},
		"AskedDropped": {reason: "And does not take it back by leaving it out.", user: crossplane(), fixture: rdsInstance, old: m{asked: "a"}, want: m{asked: "a"}},
		"AskedByOther": {reason: "Nobody else does.", user: anna(), fixture: rdsInstance, old: m{asked: "a"}, obj: m{asked: "b"}, want: m{asked: "a"}, forged: []string{asked}},
		"AskedOnXR":    {reason: "An XR is no managed resource.", user: crossplane(), old: m{asked: "a"}, obj: m{asked: "b"}, want: m{asked: "a"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.fixture == "" {
				tc.fixture = edit(t, xr, "  annotations:\n    kausality.io/initialized: \"true\"\n", "")
			}

			req := ask(t, tc.user, tc.fixture, tc.fixture, claim)
			req.Action = v1alpha1.ActionAudit
			req.Old.SetAnnotations(tc.old)
			req.New.SetAnnotations(tc.obj)
			req.Parent.SetAnnotations(tc.parent)

			d := decision.Decide(req)
			if diff := cmp.Diff(tc.want, d.Object.GetAnnotations()); diff != "" {
				t.Errorf("%s\nannotations, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.forged, d.Forged); diff != "" {
				t.Errorf("%s\nforged, -want, +got:\n%s", tc.reason, diff)
			}

			if _, denied := d.Denied(); denied != (len(tc.forged) > 0) {
				t.Errorf("%s\nDenied: %v", tc.reason, denied)
			}
		})
	}
}

func TestWhatAClaimAsksForIsRefusedWhereAnEnforcementSaysSo(t *testing.T) {
	req := ask(t, crossplane(), xr, edit(t, xr, "size: small", "size: large"), claim)
	req.Action = v1alpha1.ActionDeny
	d := decision.Decide(req)

	if _, denied := d.Denied(); !denied || len(d.Held) > 0 {
		t.Errorf("Denied: %v, held %+v", denied, d.Held)
	}

	// An XR without a Claim is not held by itself.
	unbound := edit(t, xr, "  claimRef: {apiVersion: example.org/v1alpha1, kind: DatabaseClaim, namespace: default, name: my-database}\n", "")
	if d := decision.Decide(ask(t, anna(), unbound, edit(t, unbound, "size: small", "size: large"), "")); d.Action != "" {
		t.Errorf("action: %q", d.Action)
	}
}

func TestAHeldListElementKeepsItsPlace(t *testing.T) {
	list := edit(t, xr, "  size: small\n", "  size: small\n  users: [{name: a, role: reader}, {name: b, role: reader}, {name: c, role: reader}]\n")
	obj := edit(t, xr, "  size: small\n", "  size: small\n  users: [{name: b, role: admin}, {name: c, role: reader}, {name: d, role: reader}]\n")
	parent := edit(t, claim, "  size: small\n", "  size: small\n  users: [{name: b, role: admin}, {name: c, role: reader}, {name: d, role: reader}]\n")

	d := decision.Decide(ask(t, crossplane(), list, obj, parent))
	if diff := cmp.Diff(object(t, list).Object["spec"], d.Object.Object["spec"]); diff != "" {
		t.Errorf("spec, -want, +got:\n%s", diff)
	}

	fields := make([]string, 0, len(d.Held))
	for _, h := range d.Held {
		fields = append(fields, h.Field)
	}

	want := []string{"spec.users[0].name", "spec.users[0].role", "spec.users[0].role", "spec.users[2].name", "spec.users[2].role"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("held, -want, +got:\n%s", diff)
	}
}
