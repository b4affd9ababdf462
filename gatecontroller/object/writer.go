// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Writer writes single values of objects of other people's kinds. A write tests the UID and the values that it
// replaces, and nothing else: Crossplane and providers write to the same objects all the time.
type Writer struct{ Client client.Client }

// operation is one of a JSON patch.
//
// Source: RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MergeFrom makes a patch of what differs from the version of an object that was read;
// where somebody has changed the object since, it is a conflict.
func MergeFrom(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// AddFinalizer blocks the deletion of an object. It is applied, as to a set: the finalizers of others do not matter.
func (w Writer) AddFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	out := New(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID()) // Or one that is gone is made anew.
	out.SetFinalizers([]string{v1alpha1.Finalizer})

	err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(FieldManager))
	if err != nil {
		return fmt.Errorf("cannot add a finalizer to %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}

// RemoveFinalizer takes our finalizer away. Of a managed resource that of a deletion in the foreground goes as well: its provider waits
// until it is the last one to block the deletion, and the garbage collector until what the provider needs is deleted.
func (w Writer) RemoveFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	return w.letGo(ctx, u, resource.IsManaged(u) && slices.Contains(u.GetFinalizers(), managed.ProviderFinalizer))
}

// LetGo takes our finalizer away of what goes without something that stays: a deletion in the foreground would wait for that for good.
func (w Writer) LetGo(ctx context.Context, u *unstructured.Unstructured) error {
	return w.letGo(ctx, u, true)
}

func (w Writer) letGo(ctx context.Context, u *unstructured.Unstructured, atOnce bool) error {
	var left any // Nil where none is left.

	was := u.GetFinalizers()
	if !slices.Contains(was, v1alpha1.Finalizer) {
		return nil
	}

	if others := slices.DeleteFunc(slices.Clone(was), func(f string) bool {
		return f == v1alpha1.Finalizer || f == metav1.FinalizerDeleteDependents && atOnce
	}); len(others) > 0 {
		left = others
	}

	// What it is let go by is what it carries.
	_, err := w.replace(ctx, u, false, append(swap("/metadata/finalizers", was, left), carries(u, v1alpha1.AnnotationAllowances))...)

	return err
}

// annotationsOf are the annotations of an object. False where it has none at all: of the others the cache may have left
// nothing, see [resource.Trim].
func annotationsOf(u *unstructured.Unstructured) (map[string]any, bool) {
	_, there := resource.Value(u.Object, KeyMetadata, KeyAnnotations)

	return resource.Map(u.Object, KeyMetadata, KeyAnnotations), there
}

// carries tests the value of an annotation.
func carries(u *unstructured.Unstructured, key string) operation {
	all, there := annotationsOf(u)
	if !there {
		return operation{Op: opTest, Path: pathAnnotations}
	}

	return operation{Op: opTest, Path: pathAnnotations + "/" + escape(key), Value: all[key]}
}

// Annotate writes annotations, where nil removes one, and returns the object as it is then. One that is being deleted
// by now is another.
func (w Writer) Annotate(
	ctx context.Context, u *unstructured.Unstructured, annotations map[string]any,
) (*unstructured.Unstructured, error) {
	was, there := annotationsOf(u)
	if !there {
		left := maps.Clone(annotations)
		maps.DeleteFunc(left, func(_ string, value any) bool { return value == nil })

		if len(left) == 0 {
			return u, nil
		}

		return w.replace(ctx, u, stamp.AnnotatedByStatus(u), append(swap(pathAnnotations, nil, left), staying(u))...)
	}

	out := []operation{staying(u)}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		out = append(out, swap(pathAnnotations+"/"+escape(key), was[key], annotations[key])...)
	}

	if len(out) == 1 {
		return u, nil
	}

	return w.replace(ctx, u, stamp.AnnotatedByStatus(u), out...)
}

// ReplaceStatus replaces the value of a status that a JSON pointer names.
func (w Writer) ReplaceStatus(ctx context.Context, u *unstructured.Unstructured, path string, was, now any) error {
	_, err := w.replace(ctx, u, true, swap(path, was, now)...)

	return err
}

const (
	opTest          = "test"
	pathAnnotations = "/metadata/annotations"
)

// staying tests that an object is being deleted, or not, as it was.
func staying(u *unstructured.Unstructured) operation {
	at, _ := resource.Value(u.Object, KeyMetadata, "deletionTimestamp")

	return operation{Op: opTest, Path: "/metadata/deletionTimestamp", Value: at}
}

// swap replaces a value that is what it was; nil stands for one that is not there. A path that is not there passes as
// null.
//
// Source: gopkg.in/evanphx/json-patch.v4, Patch.test.
func swap(path string, was, now any) []operation {
	out := []operation{{Op: opTest, Path: path, Value: was}}

	switch {
	case was != nil && now != nil:
		return append(out, operation{Op: "replace", Path: path, Value: now})
	case now != nil:
		return append(out, operation{Op: "add", Path: path, Value: now})
	case was != nil:
		return append(out, operation{Op: "remove", Path: path})
	default:
		return nil
	}
}

// escape makes a key part of a JSON pointer.
//
// Source: RFC 6901.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// replace sends operations for the object of the UID. One that is gone needs no change.
func (w Writer) replace(
	ctx context.Context, u *unstructured.Unstructured, status bool, operations ...operation,
) (*unstructured.Unstructured, error) {
	if len(operations) == 0 {
		return u, nil
	}

	raw, err := json.Marshal(slices.Insert(operations, 0, operation{Op: opTest, Path: "/metadata/uid", Value: u.GetUID()}))
	if err != nil {
		return nil, fmt.Errorf("cannot encode a patch of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	out, patch := u.DeepCopy(), client.RawPatch(types.JSONPatchType, raw)

	if status {
		err = w.Client.Status().Patch(ctx, out, patch, client.FieldOwner(FieldManager))
	} else {
		err = w.Client.Patch(ctx, out, patch, client.FieldOwner(FieldManager))
	}

	switch {
	case apierrors.IsNotFound(err):
		return u, nil
	case err != nil:
		return nil, fmt.Errorf("cannot patch %s %q: %w", u.GetKind(), u.GetName(), err)
	default:
		return out, nil
	}
}
