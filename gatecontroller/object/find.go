// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Find reads what is referred to, in whatever version of its kind is served.
func Find(ctx context.Context, live client.Reader, mapper meta.RESTMapper, ref resource.Reference) (*unstructured.Unstructured, error) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}

	return served.Reading(live, mapper, key).Find(ctx, ref.GroupVersionKind())
}

// IsGone reports whether an object is not there, or nothing serves its kind.
func IsGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// HasFinalizer reports whether an object waits for us before it goes.
func HasFinalizer(u *unstructured.Unstructured) bool {
	return controllerutil.ContainsFinalizer(u, v1alpha1.Finalizer)
}

// ErrGone is of what is referred to and not there.
var ErrGone = served.ErrGone

// New returns an empty object of a kind.
func New(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

// FieldManager is the field manager of our other writes to objects.
const FieldManager = "kausality-manager"

// Fields of every object that patches of ours write.
const (
	KeyMetadata    = "metadata"
	KeyAnnotations = "annotations"
	KeyVersion     = "resourceVersion"
)

// Labels of metrics about kinds.
const (
	LabelGroup = "group"
	LabelKind  = "kind"
)
