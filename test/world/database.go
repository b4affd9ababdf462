// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// The kinds of managed resources.
const (
	kindDatabase = "Database"
	kindRegion   = "Region"
)

// Namespace makes a namespace.
func (w *World) Namespace(t *testing.T, name string) {
	t.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}

// Database makes a small managed resource, and waits until it is there with its
// gate closed. Without a namespace it is a region.
func (w *World) Database(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()

	u := w.Made(t, namespace, name)
	Eventually(t, "a closed gate of "+name, w.Closed("small", u))

	return u
}

// Made makes a small managed resource, as a Composition with the function does.
// Without a namespace it is a region.
func (w *World) Made(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()

	u := Prototype(Kind(kindDatabase))
	if namespace == "" {
		u = Prototype(Kind(kindRegion))
	}

	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: `{"v":1,"policies":["*"]}`})
	u.Object["spec"] = map[string]any{
		"managementPolicies": []any{"Observe", "LateInitialize", "Create", "Update"}, "forProvider": map[string]any{"size": "small"},
	}

	Eventually(t, "making "+name, func(ctx context.Context) error { return w.Crossplane.Create(ctx, u.DeepCopy()) })

	return u
}

// Resize has hans change the size, with a ticket.
func (w *World) Resize(ctx context.Context, u *unstructured.Unstructured, size string) error {
	return w.Hans.Patch(ctx, u.DeepCopy(),
		Merge(`{"metadata": {"annotations": {"ticket": "SQL-`+size+`"}}, "spec": {"forProvider": {"size": "`+size+`"}}}`))
}
