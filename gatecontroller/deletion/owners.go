// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// actionLetGo is what events about deletions say we did.
const actionLetGo = "LetGo"

// Owners block the deletion of parents of gated resources until what their deletion gives is
// written into what they own: once they are gone nothing else shows.
type Owners struct {
	Client client.Client
	Live   client.Reader
	// Judge judges deletions by what there is to decide by.
	Judge *judging.Judge
	// Watches has kinds be reconciled by these controllers.
	Watches *watch.Watches
	// Access reports whether a kind of parents may be read.
	Access *access.Access
	// Ungoverned reports whether there is nothing to pass on to objects of a kind.
	Ungoverned func(gk schema.GroupKind) bool
	// Leftovers report what stays.
	Leftovers *Leftovers
	// Failed counts expressions that fail; nil for nobody.
	Failed *judging.Expressions
}

// EnsureFinalizer sees to it that the parent of an object is not gone before the object
// knows what that means for it.
func (o *Owners) EnsureFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	ref, ok := resource.ParentOf(u)
	if !ok || ref.UID == "" || resource.Deleting(u) {
		return nil // A Claim waits for its XR by itself.
	}

	parent, err := o.parent(ctx, u, ref)
	if apierrors.IsNotFound(err) || errors.Is(err, served.ErrGone) {
		return o.Leftovers.reportOwnerGone(ctx, u, ref)
	}

	if err != nil {
		return fmt.Errorf("cannot get the parent of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if !ref.Is(parent) || resource.Deleting(parent) && !object.HasFinalizer(parent) {
		return nil
	}

	if unreferenced(parent, u) {
		o.warnUnreferenced(ctx, u, parent)
	}

	// First: nothing may be kept that nobody lets go, nor what was kept before
	// we were started.
	gvk := parent.GroupVersionKind()
	if err := o.Watches.RunOwner(ctx, gvk); err != nil {
		return err
	}

	if resource.Deleting(parent) || object.HasFinalizer(parent) {
		return nil
	}

	if err := o.writer().AddFinalizer(ctx, parent); err != nil {
		return err
	}

	return o.Watches.RunOwner(ctx, gvk) // In case it was released meanwhile.
}

// parent reads what an object refers to as its parent: from the cache, for it is read each time that the object changes, and from the API
// server where the cache lacks what comes with the object. The webhook gives an XR our finalizer with its first reference.
func (o *Owners) parent(ctx context.Context, u *unstructured.Unstructured, ref resource.Reference) (*unstructured.Unstructured, error) {
	// A cache of what may not be listed would keep us waiting for ever.
	gvk := ref.GroupVersionKind()
	if err := o.Access.Readable(ctx, o.Client.RESTMapper(), gvk.GroupKind()); err != nil {
		return nil, err
	}

	parent := object.New(gvk)
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, parent)

	switch {
	case served.Unserved(err):
		return o.find(ctx, ref)
	case err != nil || resource.Deleting(parent) || object.HasFinalizer(parent) && !unreferenced(parent, u):
		return parent, err
	default:
		return parent, o.Live.Get(ctx, client.ObjectKeyFromObject(parent), parent)
	}
}

func (o *Owners) writer() object.Writer { return object.Writer{Client: o.Client} }

func (o *Owners) find(ctx context.Context, ref resource.Reference) (*unstructured.Unstructured, error) {
	return object.Find(ctx, o.Live, o.Client.RESTMapper(), ref)
}

// Release writes what the deletion of a parent gives into what it owns, and lets
// it go. It is true where that waits for what the deletion of its own owner gives: the garbage collector goes on in any order.
func (o *Owners) Release(ctx context.Context, u *unstructured.Unstructured) (waits bool, err error) {
	parent := object.New(u.GroupVersionKind())
	if err := o.Live.Get(ctx, client.ObjectKeyFromObject(u), parent); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	if !object.HasFinalizer(parent) || !resource.Deleting(parent) {
		return false, nil
	}

	// What Crossplane is composing still says that everything is to stay. It
	// comes back here when that has ended.
	if resource.Composing(parent) {
		return false, nil
	}

	if waits, err := o.awaitsOwner(ctx, parent); err != nil || waits {
		return waits, err
	}

	// Who orphans what it owns gives it nothing.
	if !slices.Contains(parent.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		if left, err := o.passOn(ctx, parent); err != nil {
			return false, err
		} else if left {
			return false, o.writer().LetGo(ctx, parent)
		}
	}

	return false, o.writer().RemoveFinalizer(ctx, parent)
}

// awaitsOwner reports whether what owns a parent is being deleted as well, and has not passed on yet what that gives. A Claim passes on
// nothing before what it is bound to is gone. The parent waits for that, and is looked at again after a second.
func (o *Owners) awaitsOwner(ctx context.Context, parent *unstructured.Unstructured) (bool, error) {
	ref, ok := resource.ParentOf(parent)
	if !ok || resource.BoundToClaim(parent) {
		return false, nil
	}

	owner, err := o.find(ctx, ref)

	switch {
	case errors.Is(err, served.ErrGone), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot get what owns %s %q: %w", parent.GetKind(), parent.GetName(), err)
	default:
		return ref.Is(owner) && resource.Deleting(owner) && object.HasFinalizer(owner), nil
	}
}

// passOn writes what the deletion of a parent gives into each gated resource
// that it owns, and each object that owns such. Where it gives nothing, the
// external resource stays, and that is said: true where one does.
func (o *Owners) passOn(ctx context.Context, parent *unstructured.Unstructured) (left bool, err error) {
	children, err := o.children(ctx, parent)
	if err != nil {
		return false, err
	}

	for _, child := range children {
		if !inherits(child, parent) {
			continue
		}

		stays, err := o.passOnTo(ctx, parent, child)
		if err != nil {
			return false, err
		}

		left = left || stays
	}

	return left, nil
}

// inherits reports whether an object is to know what the deletion of a parent gives.
func inherits(child, parent *unstructured.Unstructured) bool {
	return owned(child, parent) && (management.Governed(child) || object.HasFinalizer(child)) && !managed.Ungated(child)
}

func owned(child, parent *unstructured.Unstructured) bool {
	owner, ok := resource.ParentOf(child)

	return ok && owner.Is(parent)
}

// children reads what a parent may own: what an XR says it is made of, and
// otherwise what is watched. All of it live, for policies may read more of an
// object than what is cached.
func (o *Owners) children(ctx context.Context, parent *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	refs := resource.Composed(parent)

	if !resource.IsComposite(parent) {
		var err error
		if refs, err = o.watched(ctx, parent); err != nil {
			return nil, err
		}
	}

	out := make([]*unstructured.Unstructured, 0, len(refs))

	for _, ref := range refs {
		child, err := o.find(ctx, ref)
		if errors.Is(err, served.ErrGone) {
			continue
		}

		// Nobody gives us rights on what is not governed.
		if apierrors.IsForbidden(err) && o.Ungoverned(ref.GroupKind()) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("cannot get what %s %q owns: %w", parent.GetKind(), parent.GetName(), err)
		}

		out = append(out, child)
	}

	return out, nil
}

// watched refers to what a parent owns among all that is watched.
func (o *Owners) watched(ctx context.Context, parent *unstructured.Unstructured) ([]resource.Reference, error) {
	var out []resource.Reference

	for _, gvk := range o.Watches.Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)

		if err := o.Client.List(ctx, list, client.InNamespace(parent.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list what %s %q may own: %w", parent.GetKind(), parent.GetName(), err)
		}

		for i := range list.Items {
			if u := &list.Items[i]; inherits(u, parent) {
				out = append(out, resource.Reference{
					APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
				})
			}
		}
	}

	return out, nil
}

func (o *Owners) passOnTo(ctx context.Context, parent, child *unstructured.Unstructured) (stays bool, err error) {
	d, err := judge(ctx, o.Judge, child, parent)
	o.Failed.Count(d.Problems...)

	if err != nil {
		return false, err
	}

	if !d.Allowed() {
		o.Leftovers.reportOrphaned(ctx, parent, child, &d)

		return true, nil
	}

	if d.Object == nil {
		return false, nil
	}

	annotations := map[string]any{}

	for _, key := range []string{v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace} {
		if v := resource.Annotation(d.Object, key); v != resource.Annotation(child, key) {
			annotations[key] = v
		}
	}

	if len(annotations) == 0 {
		return false, nil
	}

	if _, err := o.writer().Annotate(ctx, child, annotations); err != nil {
		return false, err
	}

	f, _ := d.Lead()
	log.FromContext(ctx).WithValues(judging.Judged(&d)...).Info("Passed on what a deletion gives",
		"child", child.GroupVersionKind().GroupKind().String(), "childNamespace", child.GetNamespace(), "childName", child.GetName(),
		"rule", f.Rule, "initiator", f.Initiator())

	return false, nil
}

// ReleaseAll lets all objects of a kind go that wait for us, a page at a time. Where that takes longer than the API server
// remembers where a page ended, it starts again with those that are left.
func (o *Owners) ReleaseAll(ctx context.Context, gvk schema.GroupVersionKind) error {
	for next := ""; ; {
		list, err := o.page(ctx, gvk, next)
		if next != "" && apierrors.IsResourceExpired(err) {
			next = ""

			continue
		}

		if err != nil {
			return fmt.Errorf("cannot list %s: %w", gvk, err)
		}

		for i := range list.Items {
			if u := &list.Items[i]; object.HasFinalizer(u) {
				if err := o.writer().RemoveFinalizer(ctx, u); err != nil {
					return err
				}
			}
		}

		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// page lists objects of a kind from where a page ended. It is empty where the kind is no longer served, or may not be listed.
func (o *Owners) page(ctx context.Context, gvk schema.GroupVersionKind, from string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	err := o.Live.List(ctx, list, client.Limit(pageSize), client.Continue(from))

	// Who took the right away has to give it back; nobody else must wait for that.
	if apierrors.IsForbidden(err) {
		log.FromContext(ctx).Error(err, "Cannot release what waits for the manager, which may not list it", "kind", gvk.String())
	}

	if object.IsGone(err) || apierrors.IsForbidden(err) {
		return &unstructured.UnstructuredList{}, nil
	}

	return list, err
}
