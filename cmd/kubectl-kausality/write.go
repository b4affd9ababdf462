// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// fieldManager is the field manager of what these commands write.
const fieldManager = "kubectl-kausality"

// at is where an object of a kind is written.
func (c *cluster) at(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("cannot find kind %q: %w", gvk.Kind, err)
	}

	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.client.Resource(m.Resource).Namespace(namespace), nil
	}

	return c.client.Resource(m.Resource), nil
}

func (c *cluster) dryRun() []string {
	if c.dry.on() {
		return []string{metav1.DryRunAll}
	}

	return nil
}

// note remembers an object that is written or deleted.
func (c *cluster) note(u *unstructured.Unstructured) {
	ref := refOf(u)
	ref.Generation = 0 // It may be another one by now.

	if !slices.Contains(c.written, ref) {
		c.written = append(c.written, ref)
	}
}

// read reads an object by reference.
func (c *cluster) read(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	at, err := c.at(gvk, namespace)
	if err != nil {
		return nil, err
	}

	u, err := at.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", gvk.Kind, name, err)
	}

	return u, nil
}

// patch merges a patch into an object; nil is none.
func (c *cluster) patch(ctx context.Context, u *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	if patch == nil {
		return u, nil
	}

	c.note(u)

	if c.dry.local() {
		return u, nil
	}

	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a patch of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	at, err := c.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}

	out, err := at.Patch(ctx, u.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: fieldManager, DryRun: c.dryRun()})
	if err != nil {
		return nil, fmt.Errorf("cannot patch %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return out, nil
}

func (c *cluster) create(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c.note(u)

	if c.dry.local() {
		return u, nil
	}

	at, err := c.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}

	out, err := at.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager, DryRun: c.dryRun()})
	if err != nil {
		return nil, fmt.Errorf("cannot create %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return out, nil
}

// remove deletes an object, if it is still the same.
func (c *cluster) remove(ctx context.Context, u *unstructured.Unstructured) error {
	c.note(u)

	if c.dry.local() {
		return nil
	}

	at, err := c.at(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return err
	}

	err = at.Delete(ctx, u.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(u.GetUID())}, DryRun: c.dryRun(),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}

// gone says which owners of an object are there no more, or are being deleted: they decide nothing any more. What could not be found
// out counts as there, and is the error.
func (c *cluster) gone(ctx context.Context, u *unstructured.Unstructured) (orphan.Gone, error) {
	var lost []string

	for _, ref := range u.GetOwnerReferences() {
		owner, err := c.find(ctx, resource.Reference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: u.GetNamespace(), Name: ref.Name,
		})

		switch {
		case errors.Is(err, served.ErrGone):
			lost = append(lost, string(ref.UID))
		case err != nil:
			return nil, fmt.Errorf("cannot tell whether an owner of %s %q is there: %w", u.GetKind(), u.GetName(), err)
		case owner.GetUID() != ref.UID, resource.Deleting(owner):
			lost = append(lost, string(ref.UID))
		}
	}

	return func(ref map[string]any) bool { return slices.Contains(lost, resource.String(ref, "uid")) }, nil
}

// record is what was written down about an object that is gone.
type record struct {
	orphan.Record

	secret *unstructured.Unstructured
}

// records returns what was written down about the object that arguments name,
// newest first.
func (c *cluster) records(ctx context.Context, kind, name string) ([]record, error) {
	selector := orphan.Label // Of a kind that is not served any more nobody can know the scope.

	if m, err := c.mapping(kind); err == nil {
		namespace := ""
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = c.namespace
		}

		selector += "=" + orphan.Key(m.GroupVersionKind.GroupKind(), namespace, name)
	}

	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

	list, err := c.client.Resource(secrets).Namespace(c.home).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list records of orphaned external objects in namespace %q: %w", c.home, err)
	}

	var out []record

	for i := range list.Items {
		r, err := readRecord(&list.Items[i])
		if err != nil {
			return nil, err
		}

		if r.Object.GetName() == name && (r.Object.GetNamespace() == "" || r.Object.GetNamespace() == c.namespace) &&
			means(kind, r.Object.GroupVersionKind().GroupKind()) {
			out = append(out, r)
		}
	}

	slices.SortFunc(out, func(a, b record) int { return b.When.Compare(a.When) })

	return out, nil
}

func readRecord(u *unstructured.Unstructured) (record, error) {
	secret := struct {
		Data map[string][]byte `json:"data"`
	}{}

	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"data": u.Object["data"]}, &secret)
	if err != nil {
		return record{}, fmt.Errorf("cannot read Secret %q: %w", u.GetName(), err)
	}

	r, err := orphan.ReadRecord(secret.Data)
	if err != nil {
		return record{}, fmt.Errorf("cannot read Secret %q: %w", u.GetName(), err)
	}

	return record{Record: r, secret: u}, nil
}

// means reports whether a person means a kind, as far as one can know without the
// API server: by the kind or a plural of it, with or without its group or the
// start of that.
func means(text string, gk schema.GroupKind) bool {
	name, group, _ := strings.Cut(strings.ToLower(text), ".")
	kind := strings.ToLower(gk.Kind)

	return (name == kind || strings.HasPrefix(name, strings.TrimSuffix(kind, "y")) && strings.HasSuffix(name, "s")) &&
		(group == "" || strings.HasPrefix(gk.Group, group) || strings.HasSuffix(group, gk.Group))
}
