// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// find reads what is referred to, in whatever version of its kind is served.
func find(ctx context.Context, live client.Reader, mapper meta.RESTMapper, ref resource.Reference) (*unstructured.Unstructured, error) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}

	return served.Reading(live, mapper, key).Find(ctx, ref.GroupVersionKind()) //nolint:wrapcheck // The caller says what.
}

// isGone says whether an object is not there, or nothing serves its kind.
func isGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// kept says whether an object waits for us before it goes.
func kept(u *unstructured.Unstructured) bool {
	return slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer)
}

// errGone is of what is referred to and not there.
var errGone = served.ErrGone

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

// ParentManager is the field manager of our other writes to objects.
const ParentManager = "kausality-manager"

// Fields of every object that patches of ours write.
const (
	keyMetadata    = "metadata"
	keyAnnotations = "annotations"
	keyVersion     = "resourceVersion"
)

// Labels of metrics about kinds.
const (
	labelGroup = "group"
	labelKind  = "kind"
)

// conflictDelay lets the cache catch up with a write by somebody else.
const conflictDelay = 50 * time.Millisecond
