// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

const (
	// patienceRead is how long all that is read may take.
	patienceRead = 2 * time.Minute
	// defaultMaxOpen is how long a gate may be open where nothing else is said, as
	// for the manager.
	defaultMaxOpen = time.Hour
)

// examination reads what the doctor checks.
type examination struct{ *cluster }

// state reads what the doctor checks. What may not be read is noted in it; the
// error is that of a cluster that does not answer.
func (c examination) state(ctx context.Context, opts doctorOptions) (*doctor.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceRead)
	defer cancel()

	if _, err := c.discovery.ServerVersion(); err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}

	s := &doctor.State{
		Now: time.Now(), Functions: opts.functions,
		Lists: map[doctor.Source]doctor.List{}, Gone: map[string]bool{},
	}

	for _, src := range doctor.Sources() {
		if !src.Home {
			s.Lists[src] = c.list(ctx, src, "")
		}
	}

	s.Manager = doctor.FindManager(s.Lists)
	if opts.homeGiven {
		s.Manager.Namespace = opts.home
	}

	c.home = s.Manager.Namespace
	s.MaxOpen = cmp.Or(opts.maxOpen, s.Manager.MaxOpen, defaultMaxOpen)
	s.Lists[doctor.Leases] = c.list(ctx, doctor.Leases, c.home)
	s.Lists[doctor.Secrets] = c.secrets(ctx, s.Manager.Secret)

	s.Served, s.Readable = c.served()

	c.composites(ctx, s)

	for _, src := range doctor.Gated(s) {
		l := c.list(ctx, src, c.namespace)
		if l.Problem != "" {
			s.Unread = append(s.Unread, src.Resource+"."+src.Group+": "+l.Problem)
		}

		s.Managed = append(s.Managed, l.Items...)
	}

	for _, u := range s.Managed {
		c.owner(ctx, s.Gone, u)
	}

	c.rights(ctx, s, opts)

	if opts.roles {
		return s, nil
	}

	for _, a := range doctor.Asks(s) {
		s.Probes = append(s.Probes, c.probe(ctx, a))
	}

	return s, nil
}

// composites reads the XRs of Compositions that run the function, or did.
func (c examination) composites(ctx context.Context, s *doctor.State) {
	for _, src := range doctor.Composites(s) {
		s.Composites = append(s.Composites, c.list(ctx, src, "").Items...)
	}

	for _, src := range doctor.Former(s) {
		all := c.list(ctx, src, "").Items
		s.Former = append(s.Former, slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return !doctor.Dropped(u) })...)
	}
}

// list reads all there is of a resource, in pages.
func (c *cluster) list(ctx context.Context, src doctor.Source, namespace string) doctor.List {
	gvr := schema.GroupVersionResource{Group: src.Group, Version: src.Version, Resource: src.Resource}

	var at dynamic.ResourceInterface = c.client.Resource(gvr)

	// Of a cluster-scoped resource the namespace does not matter.
	if gvk, err := c.mapper.KindFor(gvr); err == nil {
		if m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && m.Scope.Name() == meta.RESTScopeNameNamespace {
			at = c.client.Resource(gvr).Namespace(namespace)
		}
	}

	var out doctor.List

	err := eachOf(ctx, at, func(u *unstructured.Unstructured) { out.Items = append(out.Items, u) })

	switch {
	case apierrors.IsNotFound(err):
		return doctor.List{Absent: true}
	case err != nil:
		return doctor.List{Problem: err.Error()}
	default:
		return out
	}
}

// eachOf goes through all there is of a resource, a few pages at a time.
func eachOf(ctx context.Context, at dynamic.ResourceInterface, visit func(*unstructured.Unstructured)) error {
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) }))

	return pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			visit(u)
		}

		return nil
	})
}

// secrets reads the webhook's certificate and the records of what was left
// behind.
func (c examination) secrets(ctx context.Context, certificate string) doctor.List {
	at := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.home)

	records, err := at.List(ctx, metav1.ListOptions{LabelSelector: orphan.Label})
	if err != nil {
		return doctor.List{Problem: err.Error()}
	}

	var out doctor.List
	for i := range records.Items {
		out.Items = append(out.Items, &records.Items[i])
	}

	if certificate == "" {
		return out
	}

	found, err := at.Get(ctx, certificate, metav1.GetOptions{})

	switch {
	case err == nil:
		out.Items = append(out.Items, found)
	case !apierrors.IsNotFound(err):
		return doctor.List{Problem: err.Error()}
	}

	return out
}

// owner notes whether the owner of a managed resource is gone. One that may not
// be read counts as there.
func (c examination) owner(ctx context.Context, gone map[string]bool, u *unstructured.Unstructured) {
	ref, ok := resource.ParentOf(u)
	if _, known := gone[ref.UID]; !ok || known {
		return
	}

	owner, err := c.find(ctx, ref)
	gone[ref.UID] = errors.Is(err, served.ErrGone) || err == nil && string(owner.GetUID()) != ref.UID
}
