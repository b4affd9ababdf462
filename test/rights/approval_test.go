// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package rights_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// things are kinds as those of Crossplane's XRs are, and who may what about them. The manager
// may not read them: what a PendingChange says of them it leaves as it is.
const things = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.approval.example.org}
spec:
  group: approval.example.org
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, categories: [crossplane, composite]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status, reason, lastTransitionTime]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
---
apiVersion: v1
kind: Namespace
metadata: {name: approvals}
---
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: things}
spec:
  match: {apiGroup: approval.example.org, kind: Thing, fields: [spec]}
  allow: [{apiGroup: approval.example.org, kind: Thing, mutations: [spec]}]
---
# What the RBAC manager of Crossplane gives to editors of an XR.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approvals-edit}
rules:
- {apiGroups: [approval.example.org], resources: [things, things/status], verbs: ["*"]}
---
# More than anybody should have of Kausality's kinds.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approvals-forge}
rules:
- {apiGroups: [kausality.io], resources: [changeapprovals, changeapprovals/status, pendingchanges, pendingchanges/status],
  verbs: [create, get, list, watch, update, patch, delete, deletecollection]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: approve, namespace: approvals}
rules:
- {apiGroups: [approval.example.org], resources: [things/kausality], verbs: [approve]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: approve-one, namespace: approvals}
rules:
- {apiGroups: [approval.example.org], resources: [things/kausality], resourceNames: [one], verbs: [approve, approve-destructive]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: approve, namespace: approvals}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approve},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: berta}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: anna},
    {kind: ServiceAccount, namespace: approvals, name: robot}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: approve-one, namespace: approvals}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approve-one},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dba}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: edit, namespace: approvals}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: approvals-edit},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: emil}, {kind: ServiceAccount, namespace: crossplane-system, name: crossplane}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: approvers, namespace: approvals}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kausality-approver},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: forge, namespace: approvals}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: approvals-forge},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]}
`

const approvals = "approvals"

// manager is the user that the manager is.
var manager = "system:serviceaccount:" + stack.KausalityNamespace + ":kausality-manager"

// a digest of a list, and those of three changes.
func digest(n int) string { return fmt.Sprintf("sha256:%064d", n) }

// userOf is somebody, with what the API server knows of them.
type userOf struct {
	name   string
	groups []string
	uid    string
	extra  map[string][]string
}

// as is a client of somebody that knows our kinds.
func as(t *testing.T, u userOf) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	world.Must(t, errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)))

	config := running.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}

	if u.name != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: u.name, Groups: append(u.groups, "system:authenticated"), UID: u.uid, Extra: u.extra}
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	world.Must(t, err)

	return c
}

// list is a PendingChange of two things of which the first is destroyed, and its status.
func list() *v1alpha1.PendingChange {
	ref := func(name string) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{APIVersion: "approval.example.org/v1", Kind: "Thing", Namespace: approvals, Name: name}
	}

	return &v1alpha1.PendingChange{
		ObjectMeta: metav1.ObjectMeta{Name: "thing-one", Namespace: approvals},
		Spec:       v1alpha1.PendingChangeSpec{ObjectRef: ref("root")},
		Status: v1alpha1.PendingChangeStatus{
			Digest: digest(9), Total: 3, Destroys: 1, Requesters: []string{"anna"},
			Changes: []v1alpha1.HeldChange{
				{Ref: ref("one"), Field: "delete", Destroys: true, Digest: digest(1)},
				{Ref: ref("one"), Field: "spec.size", Digest: digest(2)},
				{Ref: ref("two"), Field: "spec.size", Digest: digest(3)},
			},
		},
	}
}

// hold has the PendingChange be there, as the manager would.
func hold(t *testing.T) {
	t.Helper()

	c, want := as(t, userOf{name: manager}), list()

	made := want.DeepCopy()
	if err := c.Create(t.Context(), made); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}

	world.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(want), made))
	before := made.DeepCopy()
	made.Status = want.Status
	world.Must(t, c.Status().Patch(t.Context(), made, client.MergeFrom(before)))
}

// deciding is a ChangeApproval of some changes; of all where there is none.
func deciding(changes ...string) *v1alpha1.ChangeApproval {
	out := &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "by-test-", Namespace: approvals},
		Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: "thing-one", Changes: changes},
	}
	if len(changes) == 0 {
		out.Spec.Digest = digest(9)
	}

	return out
}

// can asks the API server as somebody would by kubectl auth can-i.
func can(t *testing.T, c client.Client, verb, name string) bool {
	t.Helper()

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: "approval.example.org", Resource: "things", Subresource: v1alpha1.SubresourceKausality, Namespace: approvals, Name: name,
		},
	}}
	world.Must(t, c.Create(t.Context(), review))

	return review.Status.Allowed
}

// guarded prepares the cluster, and waits until the guards are in force.
func guarded(t *testing.T) client.Client {
	t.Helper()

	kubectl(t, things, "apply", "-f", "-")
	t.Cleanup(func() { // Other tests are about policies without rights.
		policy := &v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: "things"}}
		_ = as(t, userOf{}).Delete(context.WithoutCancel(t.Context()), policy)
	})

	admin := as(t, userOf{})
	eve := as(t, userOf{name: "eve"})

	world.Eventually(t, "PendingChanges being guarded", func(ctx context.Context) error {
		made := list()
		made.Name = "probe"

		if err := eve.Create(ctx, made, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), v1alpha1.NamePendingGuard) {
			return fmt.Errorf("somebody makes one: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})
	world.Eventually(t, "ChangeApprovals being signed", func(ctx context.Context) error {
		made := deciding()
		made.Spec.PendingChange = "nothing"

		if err := eve.Create(ctx, made, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `no PendingChange "nothing"`) {
			return fmt.Errorf("one of nothing: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})

	return admin
}

// refusedBy fails a test where something is not refused with some words.
func refusedBy(t *testing.T, what string, err error, words ...string) {
	t.Helper()

	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v", what, err)

		return
	}

	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: no %q in %v", what, w, err)
		}
	}
}

// TestWhoMayApproveByKubectlMayApprove compares kubectl auth can-i with what is admitted.
func TestWhoMayApproveByKubectlMayApprove(t *testing.T) {
	guarded(t)
	hold(t)

	entries := list().Status.Changes

	for _, u := range []userOf{
		{name: "berta"},
		{name: "carl"},
		{name: "dora", groups: []string{"dba"}},
		{name: "emil"},
		{name: "root", groups: []string{"system:masters"}},
	} {
		c := as(t, u)
		admitted := 0

		for _, e := range entries {
			verb := v1alpha1.VerbApprove
			if e.Destroys {
				verb = v1alpha1.VerbApproveDestructive
			}

			err := c.Create(t.Context(), deciding(e.Digest), client.DryRunAll)
			if may := can(t, c, verb, e.Ref.Name); may != (err == nil) {
				t.Errorf("%s may %s %s: %t; admitted: %v", u.name, verb, e.Ref.Name, may, err)
			}

			if err == nil {
				admitted++
			} else {
				refusedBy(t, u.name, err, "--verb="+verb+" --resource=things.approval.example.org/kausality -n approvals")
			}
		}

		t.Logf("%s: %d of %d", u.name, admitted, len(entries))

		if all := c.Create(t.Context(), deciding(), client.DryRunAll); (all == nil) != (admitted == len(entries)) {
			t.Errorf("%s approves %d of %d, and all: %v", u.name, admitted, len(entries), all)
		}
	}

	// What is asked for is approved by somebody else, and by nobody who is not named.
	anna := as(t, userOf{name: "anna"})
	refusedBy(t, "own change", anna.Create(t.Context(), deciding(digest(2)), client.DryRunAll), "requested the change and cannot approve it", "with GitOps")

	rejection := deciding(digest(2))
	rejection.Spec.Decision = v1alpha1.DecisionReject
	world.Must(t, anna.Create(t.Context(), rejection, client.DryRunAll))

	robot := as(t, userOf{name: "system:serviceaccount:approvals:robot"})
	refusedBy(t, "service account", robot.Create(t.Context(), deciding(digest(2)), client.DryRunAll), "--approvers=approvals:robot")

	if !can(t, robot, v1alpha1.VerbApprove, "one") {
		t.Error("the service account has no right")
	}
}

// TestWhoBreaksTheGlassHasARightOfItsOwn and says why.
func TestWhoBreaksTheGlassHasARightOfItsOwn(t *testing.T) {
	guarded(t)
	hold(t)

	breaking := func(reason, change string) *v1alpha1.ChangeApproval {
		out := deciding(change)
		out.Spec.Decision, out.Spec.Reason = v1alpha1.DecisionBreakGlass, reason

		return out
	}

	anna, dora := as(t, userOf{name: "anna"}), as(t, userOf{name: "dora", groups: []string{"dba"}})
	refusedBy(t, "the right to approve", dora.Create(t.Context(), breaking("outage", digest(2)), client.DryRunAll), "--verb=break-glass")

	kubectl(t, "", "create", "role", "break-glass", "--verb=break-glass", "--resource=things.approval.example.org/kausality", "-n", approvals)
	kubectl(t, "", "create", "rolebinding", "break-glass", "--role=break-glass", "--user=anna", "--serviceaccount=approvals:robot", "-n", approvals)

	world.Eventually(t, "the right to break the glass", func(ctx context.Context) error {
		return anna.Create(ctx, breaking("outage", digest(2)), client.DryRunAll)
	})

	if !can(t, anna, v1alpha1.VerbBreakGlass, "one") {
		t.Error("kubectl auth can-i says no")
	}

	for _, reason := range []string{"", " "} {
		if err := anna.Create(t.Context(), breaking(reason, digest(2)), client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "say why it cannot wait") {
			t.Errorf("reason %q: %v", reason, err)
		}
	}

	refusedBy(t, "what destroys", anna.Create(t.Context(), breaking("outage", digest(1)), client.DryRunAll), "may not approve-destructive")

	robot := as(t, userOf{name: "system:serviceaccount:approvals:robot"})
	refusedBy(t, "a service account", robot.Create(t.Context(), breaking("outage", digest(2)), client.DryRunAll), "only people do")
}

// TestWhatARefusalSaysGivesTheRight runs the command that it prints.
func TestWhatARefusalSaysGivesTheRight(t *testing.T) {
	guarded(t)
	hold(t)

	fritz := as(t, userOf{name: "fritz"})

	err := fritz.Create(t.Context(), deciding(digest(1)), client.DryRunAll)
	refusedBy(t, "without a right", err, "kubectl create role kausality-approve-destructive")

	command := regexp.MustCompile(`kubectl (create role .*-n approvals)`).FindStringSubmatch(err.Error())
	if len(command) != 2 {
		t.Fatalf("no command in %v", err)
	}

	kubectl(t, "", strings.Fields(command[1])...)
	kubectl(t, "", "create", "rolebinding", "fritz", "--role=kausality-approve-destructive", "--user=fritz", "-n", "approvals")

	world.Eventually(t, "the right to be enough", func(ctx context.Context) error {
		return fritz.Create(ctx, deciding(digest(1)), client.DryRunAll)
	})

	kubectl(t, "", "auth", "can-i", "approve-destructive", "things.approval.example.org/one", "--subresource=kausality", "-n", "approvals", "--as=fritz")
}

// TestAnApprovalIsSignedAndStays as it was made.
func TestAnApprovalIsSignedAndStays(t *testing.T) {
	guarded(t)
	hold(t)

	dora := as(t, userOf{name: "dora", groups: []string{"dba"}, uid: "7", extra: map[string][]string{"example.org/session": {"a", "b"}}})
	eve := as(t, userOf{name: "eve", groups: []string{"dba"}})

	made := deciding(digest(2), digest(7))
	made.Spec.Approver = &v1alpha1.Approver{Username: "anna", Groups: []string{"system:masters"}}
	world.Must(t, dora.Create(t.Context(), made))

	t.Cleanup(func() { _ = as(t, userOf{}).Delete(context.WithoutCancel(t.Context()), made) })

	got := made.Spec.Approver
	if got == nil || got.Username != "dora" || got.UID != "7" || strings.Join(got.Groups, " ") != "dba system:authenticated" ||
		strings.Join(got.Extra["example.org/session"], " ") != "a b" {
		t.Errorf("approver %+v", got)
	}

	if strings.Join(made.Spec.Changes, " ") != digest(2)+" "+digest(7) {
		t.Errorf("changes %q", made.Spec.Changes)
	}

	// Nobody changes it, or says what became of it.
	for what, patch := range map[string]string{
		"reason":   `{"spec": {"reason": "x"}}`,
		"approver": `{"spec": {"approver": {"username": "eve"}}}`,
		"nobody":   `{"spec": {"approver": null}}`,
	} {
		if err := eve.Patch(t.Context(), made.DeepCopy(), world.Merge(patch)); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s is changed: %v", what, err)
		}
	}

	// Before it ends others do not delete it, not even all of them at once, unless they may.
	refusedBy(t, "deleted", eve.Delete(t.Context(), made.DeepCopy(), client.DryRunAll), v1alpha1.NameApprovalGuard,
		`user "eve" may not delete ChangeApproval "`+made.Name+`", which "dora" has made, before it ends`, "kubectl create role withdraw --verb=withdraw")
	refusedBy(t, "all deleted", eve.DeleteAllOf(t.Context(), &v1alpha1.ChangeApproval{}, client.InNamespace(approvals), client.DryRunAll), v1alpha1.NameApprovalGuard)
	world.Must(t, as(t, userOf{name: "root", groups: []string{"system:masters"}}).Delete(t.Context(), made.DeepCopy(), client.DryRunAll))
	world.Must(t, dora.Delete(t.Context(), made.DeepCopy(), client.DryRunAll))

	kubectl(t, "", "create", "role", "withdraw", "--verb=withdraw,delete", "--resource=changeapprovals.kausality.io", "-n", approvals)
	kubectl(t, "", "create", "rolebinding", "withdraw", "--role=withdraw", "--user=wilma", "-n", approvals)
	world.Eventually(t, "the right to withdraw", func(ctx context.Context) error {
		return as(t, userOf{name: "wilma"}).Delete(ctx, made.DeepCopy(), client.DryRunAll)
	})

	status := world.Merge(`{"status": {"changes": [{"digest": "` + digest(2) + `", "ref": {"apiVersion": "v1", "kind": "A"}, "state": "Applied"}]}}`)
	refusedBy(t, "status", eve.Status().Patch(t.Context(), made.DeepCopy(), status), v1alpha1.NameApprovalGuard)
	world.Must(t, as(t, userOf{name: manager}).Status().Patch(t.Context(), made.DeepCopy(), status))

	// After that anybody does, whatever is on it.
	over := world.Merge(`{"status": {"changes": [{"digest": "` + digest(2) + `", "ref": {"apiVersion": "v1", "kind": "A"}, "state": "Applied"},
		{"digest": "` + digest(7) + `", "state": "Superseded"}]}}`)
	world.Must(t, as(t, userOf{name: manager}).Status().Patch(t.Context(), made.DeepCopy(), over))
	world.Must(t, eve.Patch(t.Context(), made, world.Merge(`{"metadata": {"finalizers": ["example.org/a"]}}`)))
	world.Must(t, eve.Delete(t.Context(), made))
	world.Must(t, eve.Patch(t.Context(), made, world.Merge(`{"metadata": {"finalizers": null}}`)))

	if err := eve.Get(t.Context(), client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestNobodyButTheManagerWritesAPendingChange and anybody deletes one.
func TestNobodyButTheManagerWritesAPendingChange(t *testing.T) {
	guarded(t)
	hold(t)

	eve := as(t, userOf{name: "eve"})
	got := list()
	world.Must(t, eve.Get(t.Context(), client.ObjectKeyFromObject(got), got))

	for what, patch := range map[string]string{
		"annotation": `{"metadata": {"annotations": {"a": "b"}}}`,
		"label":      `{"metadata": {"labels": {"a": "b"}}}`,
	} {
		refusedBy(t, what, eve.Patch(t.Context(), got.DeepCopy(), world.Merge(patch)), v1alpha1.NamePendingGuard)
	}

	refusedBy(t, "status", eve.Status().Patch(t.Context(), got.DeepCopy(), world.Merge(`{"status": {"requesters": []}}`)), v1alpha1.NamePendingGuard)

	world.Must(t, eve.Patch(t.Context(), got, world.Merge(`{"metadata": {"finalizers": ["example.org/a"]}}`)))
	world.Must(t, eve.Delete(t.Context(), got))
	world.Must(t, eve.Patch(t.Context(), got, world.Merge(`{"metadata": {"finalizers": null}}`)))

	if err := eve.Get(t.Context(), client.ObjectKeyFromObject(got), got); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestAnEditorDoesNotSayWhatIsHeld where they may write the rest of a status.
func TestAnEditorDoesNotSayWhatIsHeld(t *testing.T) {
	guarded(t)

	emil, crossplane := as(t, userOf{name: "emil"}), as(t, userOf{name: "system:serviceaccount:crossplane-system:crossplane"})

	condition := func(kind, message string) string {
		return `{"type": "` + kind + `", "status": "False", "reason": "Held", "message": "` + message + `", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
	}
	conditions := func(list ...string) client.Patch {
		return world.Merge(`{"status": {"conditions": [` + strings.Join(list, ",") + `]}}`)
	}

	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion("approval.example.org/v1")
	thing.SetKind("Thing")
	thing.SetNamespace(approvals)
	thing.SetName("root")
	world.Must(t, client.IgnoreAlreadyExists(as(t, userOf{}).Create(t.Context(), thing.DeepCopy())))

	own, held := condition("Kausality", "held"), condition("KausalityState", strings.Repeat("a", 30<<10))
	world.Must(t, crossplane.Status().Patch(t.Context(), thing.DeepCopy(), conditions(own, held)))

	world.Eventually(t, "the guard of conditions", func(ctx context.Context) error {
		err := emil.Status().Patch(ctx, thing.DeepCopy(), conditions(own), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), v1alpha1.NameHeldGuard) {
			return fmt.Errorf("an editor takes a condition away: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})

	for what, list := range map[string][]string{
		"another list": {own, condition("KausalityState", "{}")},
		"nothing":      {},
		"nothing held": {condition("Kausality", "settled"), held},
	} {
		refusedBy(t, what, emil.Status().Patch(t.Context(), thing.DeepCopy(), conditions(list...)), v1alpha1.NameHeldGuard)
	}

	// What is theirs they write, in any order.
	world.Must(t, emil.Status().Patch(t.Context(), thing.DeepCopy(), conditions(condition("Synced", "a"), held, own)))
	world.Must(t, emil.Status().Patch(t.Context(), thing.DeepCopy(), world.Merge(`{"status": {"size": 1}}`)))
	world.Must(t, as(t, userOf{name: manager, groups: []string{"system:masters"}}).Status().Patch(t.Context(), thing.DeepCopy(), conditions(own)))
}

// TestNobodyForgesAnApprovalWhileTheWebhookIsGone with its configuration.
func TestNobodyForgesAnApprovalWhileTheWebhookIsGone(t *testing.T) {
	root := guarded(t)
	hold(t)

	process := running.Process("kausality-manager")
	world.Must(t, process.Kill())
	t.Cleanup(func() { world.Must(t, process.Restart(context.WithoutCancel(t.Context()))) })

	dora := as(t, userOf{name: "dora", groups: []string{"dba"}, uid: "7", extra: map[string][]string{"example.org/session": {"a"}}})

	// 1. While it is away nothing is approved.
	if err := dora.Create(t.Context(), deciding(digest(2)), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "approvals.kausality.io") {
		t.Errorf("without the webhook: %v", err)
	}

	// 2. Without its configuration nobody is asked.
	hooks := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NameWebhooks}}
	world.Must(t, root.Delete(t.Context(), hooks))

	truth := v1alpha1.Approver{
		Username: "dora", UID: "7", Groups: []string{"dba", "system:authenticated"}, Extra: map[string]v1alpha1.ExtraValue{"example.org/session": {"a"}},
	}
	signed := func(change func(*v1alpha1.Approver)) *v1alpha1.ChangeApproval {
		out := deciding(digest(2))
		out.Spec.Approver = truth.DeepCopy()
		change(out.Spec.Approver)

		return out
	}

	world.Eventually(t, "the webhook to be gone", func(ctx context.Context) error {
		if err := dora.Create(ctx, deciding(digest(2)), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.approver is missing") {
			return fmt.Errorf("without an approver: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})

	for what, change := range map[string]func(*v1alpha1.Approver){
		"name":        func(a *v1alpha1.Approver) { a.Username = "anna" },
		"groups":      func(a *v1alpha1.Approver) { a.Groups = append(a.Groups, "system:masters") },
		"no groups":   func(a *v1alpha1.Approver) { a.Groups = nil },
		"other group": func(a *v1alpha1.Approver) { a.Groups[0] = "admins" },
		"uid":         func(a *v1alpha1.Approver) { a.UID = "8" },
		"no uid":      func(a *v1alpha1.Approver) { a.UID = "" },
		"extra":       func(a *v1alpha1.Approver) { a.Extra["scopes"] = v1alpha1.ExtraValue{"all"} },
		"no extra":    func(a *v1alpha1.Approver) { a.Extra = nil },
	} {
		refusedBy(t, what, dora.Create(t.Context(), signed(change), client.DryRunAll), v1alpha1.NameApprovalGuard, "spec.approver has to be who makes the ChangeApproval")
	}

	// 3. The truth anybody may write by themselves, also where little is known of them.
	world.Must(t, dora.Create(t.Context(), signed(func(*v1alpha1.Approver) {}), client.DryRunAll))
	world.Must(t, as(t, userOf{name: "berta"}).Create(t.Context(), signed(func(a *v1alpha1.Approver) {
		*a = v1alpha1.Approver{Username: "berta", Groups: []string{"system:authenticated"}}
	}), client.DryRunAll))

	// 4. And nobody changes what there is.
	made := signed(func(*v1alpha1.Approver) {})
	world.Must(t, dora.Create(t.Context(), made))

	t.Cleanup(func() { _ = root.Delete(context.WithoutCancel(t.Context()), made) })

	eve := as(t, userOf{name: "eve"})
	if err := eve.Patch(t.Context(), made.DeepCopy(), world.Merge(`{"spec": {"changes": ["`+digest(1)+`"]}}`)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("another change: %v", err)
	}

	got := list()
	refusedBy(t, "held", eve.Status().Patch(t.Context(), got, world.Merge(`{"status": {"digest": "`+digest(1)+`"}}`)), v1alpha1.NamePendingGuard)
}
