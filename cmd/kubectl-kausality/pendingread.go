// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// maxAbove is how many objects there may be from one to the one that people edit.
const maxAbove = 16

var (
	// errTooDeep is the cause when there are more.
	errTooDeep = fmt.Errorf("more than %d objects are above it", maxAbove)
	// errNoPending is the cause when the cluster does not know the kind.
	errNoPending = errors.New("the cluster has no PendingChanges: Kausality is not installed, or is too old")
	// errKindAlone is the cause when a selector is given, and a name.
	errKindAlone = errors.New("with --selector give a kind alone")
	// errAbove is what helps where who runs the command may not read what is above.
	errAbove = errors.New("name its PendingChange instead, as pch/NAME")
)

// pendingKind is the kind PendingChange.
func pendingKind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("PendingChange") }

// approvalKind is the kind ChangeApproval.
func approvalKind() schema.GroupVersionKind {
	return v1alpha1.GroupVersion().WithKind("ChangeApproval")
}

// pendingAt is where the PendingChange of an object is.
type pendingAt struct{ namespace, name string }

// rootOf finds the object that people edit, of it or of anything below it. A parent that is
// gone ends the search, as it does for the manager.
func (c *cluster) rootOf(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	root := u

	for range maxAbove {
		ref, ok := resource.ParentOf(root)
		if !ok {
			return root, nil
		}

		parent, err := c.find(ctx, ref)

		switch {
		case errors.Is(err, served.ErrGone):
			return root, nil
		case err != nil:
			return nil, fmt.Errorf("cannot find what people edit of %s: %w; %w", object(u), err, errAbove)
		}

		root = parent
	}

	return nil, fmt.Errorf("cannot find what people edit of %s: %w", object(u), errTooDeep)
}

// locatePending finds where the PendingChange is of each object that arguments name, each
// KIND/NAME or, with a selector, KIND alone. Each is there once.
func (c *cluster) locatePending(ctx context.Context, args []string, selector string) ([]pendingAt, error) {
	var out []pendingAt

	for _, arg := range args {
		list, err := c.named(ctx, arg, selector)
		if err != nil {
			return nil, err
		}

		for _, u := range list {
			at := pendingAt{u.GetNamespace(), u.GetName()}

			if u.GroupVersionKind().GroupKind() != pendingKind().GroupKind() {
				root, err := c.rootOf(ctx, u)
				if err != nil {
					return nil, err
				}

				at = pendingAt{pending.Namespace(root, c.home), pending.Name(root.GroupVersionKind().GroupKind(), root.GetName())}
			}

			if !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}

	return out, nil
}

// named reads the objects that an argument names.
func (c *cluster) named(ctx context.Context, arg, selector string) ([]*unstructured.Unstructured, error) {
	if selector == "" {
		kind, name, err := split([]string{arg})
		if err != nil {
			return nil, err
		}

		u, err := c.Get(ctx, kind, name)
		if err != nil {
			return nil, err
		}

		return []*unstructured.Unstructured{u}, nil
	}

	if strings.Contains(arg, "/") {
		return nil, usageError{fmt.Errorf("cannot select of %q: %w", arg, errKindAlone)}
	}

	m, err := c.mapping(arg)
	if err != nil {
		return nil, err
	}

	at, err := c.at(m.GroupVersionKind, c.namespace)
	if err != nil {
		return nil, err
	}

	list, err := at.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", m.GroupVersionKind.Kind, err)
	}

	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}

	return out, nil
}

// pendingChange reads one; nil where there is none.
func (c *cluster) pendingChange(ctx context.Context, at pendingAt) (*v1alpha1.PendingChange, error) {
	u, err := c.read(ctx, pendingKind(), at.namespace, at.name)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none, and that is no error.
	case meta.IsNoMatchError(err):
		return nil, errNoPending
	case err != nil:
		return nil, err
	}

	return pendingOf(u)
}

// pendingChanges lists them, of one namespace or of all.
func (c *cluster) pendingChanges(ctx context.Context, namespace string) ([]*v1alpha1.PendingChange, error) {
	at, err := c.at(pendingKind(), namespace)

	switch {
	case meta.IsNoMatchError(err):
		return nil, errNoPending
	case err != nil:
		return nil, err
	}

	var out []*v1alpha1.PendingChange

	for opts := (metav1.ListOptions{Limit: page}); ; {
		list, err := at.List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("cannot list PendingChanges: %w", err)
		}

		for i := range list.Items {
			p, err := pendingOf(&list.Items[i])
			if err != nil {
				return nil, err
			}

			out = append(out, p)
		}

		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}

func pendingOf(u *unstructured.Unstructured) (*v1alpha1.PendingChange, error) {
	out := &v1alpha1.PendingChange{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", object(u), err)
	}

	return out, nil
}

// waits reports whether anything of it does.
func waits(p *v1alpha1.PendingChange) bool { return p.Status.FinishedAt == nil }
