// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// parent reads what is there under a reference; nil where nothing is, or of a
// kind nobody serves.
func (m *Mutator) parent(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	parent := &unstructured.Unstructured{}
	parent.SetAPIVersion(ref.APIVersion)
	parent.SetKind(ref.Kind)

	err := m.Live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, parent)

	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // Gone, which is no error.
	case err != nil:
		return nil, fmt.Errorf("cannot get parent %s %q: %w", ref.Kind, ref.Name, err)
	default:
		return parent, nil
	}
}

// namespace reads a namespace; nil for none.
func (m *Mutator) namespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // Cluster-scoped objects have no namespace.
	}

	ns := &corev1.Namespace{}
	if err := m.Cache.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // A namespace made a moment ago; its labels are not known yet.
		}

		return nil, fmt.Errorf("cannot get namespace %q: %w", name, err)
	}

	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ns)
	if err != nil {
		return nil, fmt.Errorf("cannot read namespace %q: %w", name, err)
	}

	return &unstructured.Unstructured{Object: obj}, nil
}
