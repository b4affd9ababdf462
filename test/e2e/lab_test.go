// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Service accounts of the lab's controllers.
const (
	worker    = "system:serviceaccount:lab:worker"
	migration = "system:serviceaccount:lab:migration"
)

const labGroup = "lab.example.org"

func labKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: labGroup, Version: "v1", Kind: kind}
}

// lab is a namespace that is enforced in one way, with a plan.
type lab struct {
	cluster

	plan *unstructured.Unstructured
}

// newLab makes a namespace of a label, with a plan that was ready once.
func newLab(t *testing.T, namespace, label string) lab {
	t.Helper()

	l := lab{cluster: newCluster(t, "Plan", "plan")}
	l.kind, l.namespace = labKind("Plan"), namespace
	ctx := t.Context()

	if err := l.applyFile(ctx, "lab.yaml"); err != nil {
		t.Fatal(err)
	}

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"lab": label}}}
	if err := l.Create(ctx, ns); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(ctx), ns) })

	// It is known to have been ready once whoever reads it first: what the manager's cache has of it may be
	// older than what its controller has said.
	l.plan = l.object("Plan", "plan", map[string]any{"size": "small"})
	l.plan.SetAnnotations(map[string]string{v1alpha1.AnnotationInitialized: `{"v":1}`})

	if err := asManager(t).Create(ctx, l.plan); err != nil {
		t.Fatal(err)
	}

	// Its controller has seen it.
	if err := l.Status().Patch(ctx, l.plan, world.Merge(`{"status": {"observedGeneration": 1}}`)); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "Enforcements in force", l.inForce); err != nil {
		t.Fatal(err)
	}

	return l
}

// inForce reports whether the API server asks the webhook about the namespace.
func (l lab) inForce(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kausality.io", Version: "v1alpha1", Kind: "EnforcementList"})

	if err := l.List(ctx, list); err != nil {
		return err
	}

	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetName(), "lab-") && !resource.Ready(&list.Items[i]) {
			return fmt.Errorf("Enforcement %q is not ready: %w", list.Items[i].GetName(), world.ErrOther)
		}
	}

	return nil
}

func (l lab) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(labKind(kind))
	u.SetNamespace(l.namespace)
	u.SetName(name)

	return u
}

// task is one that the plan owns.
func (l lab) task(name string) *unstructured.Unstructured {
	u := l.object("Task", name, map[string]any{"size": "small", "color": "red"})
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: labGroup + "/v1", Kind: "Plan", Name: l.plan.GetName(), UID: l.plan.GetUID(), Controller: new(true),
	}})

	return u
}

// asManager is the manager itself, whom nobody is asked about.
func asManager(t *testing.T) client.Client {
	t.Helper()

	return impersonate(t, "system:serviceaccount:kausality-system:kausality-manager", "system:masters")
}

// made makes a task as nobody is asked about: by the manager itself.
func (l lab) made(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()

	u := l.task(name)
	if err := asManager(t).Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	return u
}

// ask has hans change the plan, and waits until the change is stored.
func (l lab) ask(t *testing.T, size string) {
	t.Helper()

	as, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	patch := world.Merge(`{"metadata": {"annotations": {"ticket": "LAB-23"}}, "spec": {"size": "` + size + `"}}`)
	if err := as.Patch(t.Context(), l.plan.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
}

// controller is a service account of the lab that may do all, as far as roles go.
func controller(t *testing.T, user string) *world.Warned {
	t.Helper()

	return warnedAs(t, user, "system:masters", "system:serviceaccounts", "system:authenticated")
}

// warnedAs is a client of a user in some groups.
func warnedAs(t *testing.T, user string, groups ...string) *world.Warned {
	t.Helper()

	return world.WarnedAs(t, running, user, groups...)
}

// size of an object as it is stored.
func (l lab) size(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()

	live := u.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
		t.Fatal(err)
	}

	return resource.String(live.Object, "spec", "size")
}

// mentions reports whether a text has all of some words in it.
func mentions(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
