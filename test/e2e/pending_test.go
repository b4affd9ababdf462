// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const annaName = anna + "@example.com"

// pendings reads PendingChanges, as whoever decides about them does.
type pendings struct {
	client.Client

	t    *testing.T
	root v1alpha1.ObjectReference
}

// pendingsOf is about one object.
func pendingsOf(t *testing.T, apiVersion, kind, namespace, name string) pendings {
	t.Helper()

	c := world.ConnectTyped(t, running.Config())

	return pendings{Client: c, t: t, root: v1alpha1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}}
}

func (p pendings) get(ctx context.Context) (*v1alpha1.PendingChange, error) {
	pch := &v1alpha1.PendingChange{}
	key := client.ObjectKey{Namespace: p.root.Namespace, Name: pending.Name(pending.KeyOf(p.root).GroupKind, p.root.Name)}

	if key.Namespace == "" {
		key.Namespace = stack.KausalityNamespace
	}

	return pch, p.Get(ctx, key, pch)
}

// held is what one change is to be like. What is empty may be anything.
type held struct {
	kind, part, field, to string
	parent                string
	cause                 v1alpha1.CauseType
	user                  string
	destroys              bool
	created               bool
}

func (h held) matches(e v1alpha1.HeldChange) bool {
	is := func(want, got string) bool { return want == "" || want == got }

	return e.Cause != nil && e.Parent != nil && is(h.kind, e.Ref.Kind) && is(h.part, e.ComposedResource) && is(h.field, e.Field) && is(h.to, e.To) &&
		is(h.parent, e.Parent.Kind) && is(string(h.cause), string(e.Cause.Type)) && is(h.user, e.Cause.User) && h.destroys == e.Destroys &&
		h.created == (e.Ref.UID == "") && e.Digest != "" && e.Cause.Since != nil
}

// lists checks that exactly these changes are listed, as of now, and who asks for them.
func (p pendings) lists(requesters []string, want ...held) check {
	return func(ctx context.Context) error {
		pch, err := p.get(ctx)
		if err != nil {
			return err
		}

		status := pch.Status
		left := slices.Clone(status.Changes)

		for _, h := range want {
			i := slices.IndexFunc(left, h.matches)
			if i < 0 {
				return fmt.Errorf("%+v is not listed among %+v: %w", h, status.Changes, world.ErrOther)
			}

			left = slices.Delete(left, i, i+1)
		}

		current := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCurrent)
		if len(left) > 0 || int(status.Total) != len(want) || !slices.Equal(status.Requesters, requesters) || current == nil ||
			current.Status != metav1.ConditionTrue || (status.FinishedAt != nil) != (len(want) == 0) || (status.Digest == "") != (len(want) == 0) {
			return fmt.Errorf("the status is %+v, and nobody expects %+v: %w", status, left, world.ErrOther)
		}

		return nil
	}
}

// listsSoon waits for something to be held, and then for its list, and says how long that took.
func (p pendings) listsSoon(ctx context.Context, hold, listed check) error {
	if err := scenario.Eventually(ctx, "a hold", hold); err != nil {
		return err
	}

	begun := time.Now()

	if err := scenario.Eventually(ctx, "its list", listed); err != nil {
		return err
	}

	p.t.Logf("it took %s until what is held was listed", time.Since(begun).Round(time.Millisecond))

	return nil
}

// unwritten checks for a while that nothing writes it, whatever happens meanwhile.
func (p pendings) unwritten(ctx context.Context, meanwhile func(i int) error) error {
	before, err := p.get(ctx)
	if err != nil {
		return err
	}

	for i := range 100 {
		if err := meanwhile(i); err != nil {
			return err
		}

		time.Sleep(100 * time.Millisecond)
	}

	after, err := p.get(ctx)
	if err == nil && after.ResourceVersion != before.ResourceVersion {
		err = fmt.Errorf("it was written, -was, +is:\n%s\n%w", cmp.Diff(before, after), world.ErrOther)
	}

	return err
}

// ownedBy checks whose it is.
func (p pendings) ownedBy(ctx context.Context, u *unstructured.Unstructured) error {
	pch, err := p.get(ctx)
	if err != nil {
		return err
	}

	if owner := metav1.GetControllerOf(pch); owner != nil || len(pch.OwnerReferences) != 1 || pch.OwnerReferences[0].UID != u.GetUID() ||
		pch.Spec.ObjectRef != pending.RefTo(u) {
		return fmt.Errorf("it is of %+v, owned by %+v: %w", pch.Spec, pch.OwnerReferences, world.ErrOther)
	}

	return nil
}

// failing is a store's Composition with a step that fails.
func failing(composition string) string {
	return strings.Replace(composition, "  - step: ready\n", "  - step: broken\n    functionRef: {name: function-that-is-not-there}\n  - step: ready\n", 1)
}

func TestWhatIsHeldOfAnXRIsListedForIt(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const composition = "pendings"

	c := newCluster(t, "Store", "pending")
	p := pendingsOf(t, "shop.example.org/v1", "Store", namespace, c.name)
	v1 := storeComposition(composition, "v1", "data")
	objects, notes := held{kind: "Object", parent: "Store"}, held{kind: "ConfigMap", parent: "Store"}

	// of is a change of what the store composes.
	of := func(h held, field, to string, cause v1alpha1.CauseType, user string) held {
		h.field, h.to, h.cause, h.user = field, to, cause, user

		return h
	}

	byAnna := []held{
		of(objects, "spec.forProvider.manifest.data.size", "huge", v1alpha1.CauseEdit, annaName), of(notes, "data.size", "huge", v1alpha1.CauseEdit, annaName),
	}
	byComposition := []held{
		of(objects, "spec.forProvider.manifest.data.version", "v2", v1alpha1.CauseComposition, ""), of(notes, "data.version", "v2", v1alpha1.CauseComposition, ""),
	}

	c.play(t, []scenario.Step{
		{Title: "A store is made, and nothing is held", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, v1), c.apply(ctx, hans, storeOf(composition, c.name, "small"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled)); err != nil {
				return err
			}

			if _, err := p.get(ctx); !apierrors.IsNotFound(err) {
				return fmt.Errorf("there is a PendingChange (%w): %w", err, world.ErrOther)
			}

			return nil
		}},
		{Title: "An edit that is not allowed is listed, with who made it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, storeOf(composition, c.name, "huge")); err != nil {
				return err
			}

			if err := p.listsSoon(ctx, c.says("2 changes held"), p.lists([]string{annaName}, byAnna...)); err != nil {
				return err
			}

			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			return p.ownedBy(ctx, xr)
		}},
		{Title: "It is not written as long as it is the same", Run: func(ctx context.Context) error {
			return p.unwritten(ctx, func(i int) error {
				xr, err := c.xr(ctx)
				if err != nil {
					return err
				}

				return c.Patch(ctx, xr, world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {"example.org/again": "%d"}}}`, i)))
			})
		}},
		{Title: "Once it is taken back it is over", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, storeOf(composition, c.name, "small")); err != nil {
				return err
			}

			return p.listsSoon(ctx, c.settled, p.lists(nil))
		}},
		{Title: "A new version of the Composition is listed, with its revision", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition(composition, "v2", "data")); err != nil {
				return err
			}

			if err := p.listsSoon(ctx, c.says("2 changes held"), p.lists(nil, byComposition...)); err != nil {
				return err
			}

			pch, err := p.get(ctx)
			if err != nil {
				return err
			}

			for _, e := range pch.Status.Changes {
				if !strings.HasPrefix(e.Cause.Revision, composition+"-") || e.Missing == "" {
					return fmt.Errorf("cause %+v, missing %q: %w", e.Cause, e.Missing, world.ErrOther)
				}
			}

			return nil
		}},
		{Title: "A pipeline that fails does not end it", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, failing(storeComposition(composition, "v2", "data"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list that is not of now", func(ctx context.Context) error {
				pch, err := p.get(ctx)
				if err != nil {
					return err
				}

				c := meta.FindStatusCondition(pch.Status.Conditions, v1alpha1.ConditionCurrent)
				if c == nil || c.Reason != v1alpha1.ReasonPipelineFailed || !strings.Contains(c.Message, `Store "pending"`) ||
					len(pch.Status.Changes) != len(byComposition) || pch.Status.FinishedAt != nil {
					return fmt.Errorf("%+v: %w", pch.Status, world.ErrOther)
				}

				return nil
			})
		}},
		{Title: "It is of now once the pipeline runs again", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition(composition, "v2", "data")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list of now", p.lists(nil, byComposition...))
		}},
		{Title: "A creation and a deletion are listed", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition(composition, "v1", "queue")); err != nil {
				return err
			}

			return p.listsSoon(ctx, c.says("2 changes held"), p.lists(nil,
				held{kind: "Object", part: "queue", field: v1alpha1.MutationCreate, parent: "Store", cause: v1alpha1.CauseComposition, created: true},
				held{kind: "Object", part: "data", field: v1alpha1.MutationDelete, parent: "Store", cause: v1alpha1.CauseComposition, destroys: true}))
		}},
		{Title: "What destroys something comes first", Run: func(ctx context.Context) error {
			pch, err := p.get(ctx)
			if err == nil && (pch.Status.Destroys != 1 || pch.Status.Changes[0].Field != v1alpha1.MutationDelete) {
				err = fmt.Errorf("%+v: %w", pch.Status, world.ErrOther)
			}

			return err
		}},
		{Title: "What is edited by hand is drift", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, v1); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a store with nothing held", all(c.settled, p.lists(nil))); err != nil {
				return err
			}

			live, err := c.parts(ctx, resource.Reference{APIVersion: "v1", Kind: "ConfigMap"}.GroupVersionKind())
			if err != nil {
				return err
			}

			byHand := controller(t, annaName)

			return scenario.Eventually(ctx, "drift", func(ctx context.Context) error {
				pch, err := p.get(ctx)
				if err != nil {
					return err
				}

				for _, e := range pch.Status.Changes {
					if of(notes, "data.size", "", v1alpha1.CauseDrift, "").matches(e) {
						return nil
					}
				}

				// What Crossplane was applying already may have come over it.
				if err := byHand.Patch(ctx, live["note"].DeepCopy(), world.Merge(`{"data": {"size": "edited"}}`)); err != nil {
					return err
				}

				return fmt.Errorf("%+v: %w", pch.Status, world.ErrOther)
			})
		}},
		{Title: "It goes with the store", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.remove(ctx, hans, xr, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of it", func(ctx context.Context) error {
				_, err := p.get(ctx)
				if err == nil {
					err = world.ErrOther
				}

				return client.IgnoreNotFound(err)
			})
		}},
	})
}

func TestWhatIsHeldBelowANestedXRIsListedForTheOuterOne(t *testing.T) {
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Arcade", "pending")
	below := c.of("Store", "pending-store")
	ctx := t.Context()

	if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.nested(ctx, "Arcade"),
		c.apply(ctx, admin, storeComposition("arcade-stores", "v1", "data")), c.apply(ctx, hans, sized("Arcade", c.name, "small"))); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a small arcade", all(below.shows("size", "small", "data"), below.settled, c.settled)); err != nil {
		t.Fatal(err)
	}

	// 1. What the nested one composes.
	if err := c.apply(ctx, admin, storeComposition("arcade-stores", "v2", "data")); err != nil {
		t.Fatal(err)
	}

	p := pendingsOf(t, "shop.example.org/v1", "Arcade", namespace, c.name)
	object := held{kind: "Object", field: "spec.forProvider.manifest.data.version", to: "v2", parent: "Store", cause: v1alpha1.CauseComposition}
	note := held{kind: "ConfigMap", field: "data.version", to: "v2", parent: "Store", cause: v1alpha1.CauseComposition}

	if err := p.listsSoon(ctx, below.says("2 changes held"), p.lists(nil, object, note)); err != nil {
		t.Fatal(err)
	}

	// 2. And the nested one itself.
	if err := c.apply(ctx, anna, sized("Arcade", c.name, "huge")); err != nil {
		t.Fatal(err)
	}

	if err := p.listsSoon(ctx, c.says("1 change held"), p.lists([]string{annaName}, object, note,
		held{kind: "Store", field: "spec.size", to: "huge", parent: "Arcade", cause: v1alpha1.CauseEdit, user: annaName})); err != nil {
		t.Fatal(err)
	}
}

// pendingRollout holds what the Deployment controller does in one namespace.
const pendingRollout = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: pending-rollout}
spec:
  match:
    resourceRules: [{apiGroups: [apps], resources: [replicasets], operations: [UPDATE]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: pending-rollout}}
  validationActions: [Hold]
`

func TestWhatIsHeldOfAReplicaSetIsListedForItsDeployment(t *testing.T) {
	world.Long(t)
	t.Parallel()

	d := deployment{cluster: newCluster(t, "Deployment", "web"), namespace: "pending-rollout", name: "web"}
	ctx := t.Context()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
	if err := errors.Join(d.Create(ctx, ns), d.apply(ctx, admin, d.manifest(1))); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = d.Delete(context.WithoutCancel(ctx), ns) })

	d.node = world.NewKubelet(t, running, d.namespace)
	d.node.Allow(world.AllPods)

	if err := scenario.Eventually(ctx, "a Deployment that is ready", func(ctx context.Context) error {
		live, err := d.live(ctx)
		if err == nil && (live.Status.AvailableReplicas != 1 || live.Status.ObservedGeneration != live.Generation) {
			err = world.ErrOther
		}

		return err
	}); err != nil {
		t.Fatal(err)
	}

	// Policies about ReplicaSets have the manager watch them.
	if err := errors.Join(d.applyFile(ctx, "rollout.yaml"), d.apply(ctx, admin, pendingRollout)); err != nil {
		t.Fatal(err)
	}

	// As the controller does once somebody scales the Deployment.
	as, p := impersonate(t, deploymentController, "system:masters"), pendingsOf(t, "apps/v1", "Deployment", d.namespace, d.name)

	isHeld := func(ctx context.Context) error {
		rs, err := d.newest(ctx)
		if err != nil {
			return err
		}

		if rs.Annotations[v1alpha1.AnnotationHeld] != "" {
			return nil
		}

		if err := as.Patch(ctx, rs, world.Merge(`{"spec": {"replicas": 7}}`)); err != nil {
			return err
		}

		return fmt.Errorf("nothing is held of the ReplicaSet: %w", world.ErrOther)
	}
	// The controller itself may write once more without it, which says that it does not ask for it: then it is asked for again.
	if err := scenario.Eventually(ctx, "its list", all(isHeld, p.lists([]string{deploymentController},
		held{kind: "ReplicaSet", field: "spec.replicas", to: "7", parent: "Deployment", cause: v1alpha1.CauseEdit, user: deploymentController}))); err != nil {
		t.Fatal(err)
	}

	live, err := d.live(ctx)
	if err != nil {
		t.Fatal(err)
	}

	root := &unstructured.Unstructured{Object: map[string]any{}}
	root.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	root.SetNamespace(live.Namespace)
	root.SetName(live.Name)
	root.SetUID(live.UID)

	if err := p.ownedBy(ctx, root); err != nil {
		t.Error(err)
	}
}

// TestWhatIsListedOutlivesTheManager does not run beside others, for which the manager would be away
// too.
func TestWhatIsListedOutlivesTheManager(t *testing.T) {
	world.Long(t)

	const composition = "pending-restarts"

	c := newCluster(t, "Store", "pending-restart")
	p := pendingsOf(t, "shop.example.org/v1", "Store", namespace, c.name)
	manager := running.Process("kausality-manager")
	listed := []held{
		{kind: "Object", field: "spec.forProvider.manifest.data.version", to: "v2", parent: "Store", cause: v1alpha1.CauseComposition},
		{kind: "ConfigMap", field: "data.version", to: "v2", parent: "Store", cause: v1alpha1.CauseComposition},
	}

	c.play(t, []scenario.Step{
		{Title: "A new version of the Composition is held", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition(composition, "v1", "data")),
				c.apply(ctx, hans, storeOf(composition, c.name, "small"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled)); err != nil {
				return err
			}

			if err := c.apply(ctx, admin, storeComposition(composition, "v2", "data")); err != nil {
				return err
			}

			return p.listsSoon(ctx, c.says("2 changes held"), p.lists(nil, listed...))
		}},
		{Title: "A restart changes nothing of it", Run: func(ctx context.Context) error {
			before, err := p.get(ctx)
			if err != nil {
				return err
			}

			if err := errors.Join(manager.Kill(), manager.Restart(ctx)); err != nil {
				return err
			}

			// What Crossplane applies while it is away is refused, and the pipeline counts as failed
			// for that long. It never lists anything else.
			if err := still(ctx, func(ctx context.Context) error {
				after, err := p.get(ctx)
				if diff := cmp.Diff(before.Status.Changes, after.Status.Changes); err == nil && diff != "" {
					err = fmt.Errorf("it was written, -was, +is:\n%s\n%w", diff, world.ErrOther)
				}

				return err
			}); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list of now", p.lists(nil, listed...))
		}},
		{Title: "What is taken back while it is away is over once it is there", Run: func(ctx context.Context) error {
			if err := manager.Kill(); err != nil {
				return err
			}

			// What Crossplane applies meanwhile is refused, for nobody answers.
			if err := errors.Join(c.apply(ctx, admin, storeComposition(composition, "v1", "data")), manager.Restart(ctx)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of it", p.lists(nil))
		}},
	})
}
