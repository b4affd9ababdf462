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

// parent reads an object's parent. Gone means that the object refers to one
// that is not there: deleted, replaced by another of the same name, or of a
// kind nobody serves.
func (m *Mutator) parent(ctx context.Context, child *unstructured.Unstructured) (parent *unstructured.Unstructured, gone bool, err error) {
	ref, ok := resource.ParentOf(child)
	if !ok {
		return nil, false, nil
	}

	parent = &unstructured.Unstructured{}
	parent.SetAPIVersion(ref.APIVersion)
	parent.SetKind(ref.Kind)

	err = m.Live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, parent)

	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("cannot get %s %q, the parent of %s %q: %w", ref.Kind, ref.Name, child.GetKind(), child.GetName(), err)
	case ref.UID != "" && string(parent.GetUID()) != ref.UID:
		return nil, true, nil
	default:
		return parent, false, nil
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
