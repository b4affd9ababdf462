// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kausality-io/kausality-crossplane/engine/doctor"
	"github.com/kausality-io/kausality-crossplane/engine/leftover"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// patienceRead is how long all that is read may take.
const patienceRead = 2 * time.Minute

// state reads what the doctor looks at. What may not be read is noted in it; the
// error is that of a cluster that does not answer.
func (c *cluster) state(ctx context.Context, opts doctorOptions) (*doctor.State, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceRead)
	defer cancel()

	if _, err := c.discovery.ServerVersion(); err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}

	s := &doctor.State{
		Now: time.Now(), Home: opts.home, Functions: opts.functions, MaxOpen: opts.maxOpen,
		Lists: map[doctor.Source]doctor.List{}, Gone: map[string]bool{},
	}

	for _, src := range doctor.Sources() {
		if src == doctor.Secrets {
			continue // No more of these than has to be.
		}

		namespace := ""
		if src.Home {
			namespace = opts.home
		}

		s.Lists[src] = c.list(ctx, src, namespace)
	}

	s.Lists[doctor.Secrets] = c.secrets(ctx)

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

	s.Probe = c.probe(ctx)

	return s, nil
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

	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) }))

	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			out.Items = append(out.Items, u)
		}

		return nil
	})

	switch {
	case apierrors.IsNotFound(err):
		return doctor.List{Absent: true}
	case err != nil:
		return doctor.List{Problem: err.Error()}
	default:
		return out
	}
}

// secrets reads the webhook's certificate and the records of what was left
// behind.
func (c *cluster) secrets(ctx context.Context) doctor.List {
	at := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(c.home)

	records, err := at.List(ctx, metav1.ListOptions{LabelSelector: leftover.Label})
	if err != nil {
		return doctor.List{Problem: err.Error()}
	}

	var out doctor.List
	for i := range records.Items {
		out.Items = append(out.Items, &records.Items[i])
	}

	certificate, err := at.Get(ctx, doctor.CertificateSecret, metav1.GetOptions{})

	switch {
	case err == nil:
		out.Items = append(out.Items, certificate)
	case !apierrors.IsNotFound(err):
		return doctor.List{Problem: err.Error()}
	}

	return out
}

// owner notes whether the owner of a managed resource is gone. One that may not
// be read counts as there.
func (c *cluster) owner(ctx context.Context, gone map[string]bool, u *unstructured.Unstructured) {
	ref, ok := resource.ParentOf(u)
	if _, known := gone[ref.UID]; !ok || known {
		return
	}

	owner, err := c.read(ctx, ref.GroupVersionKind(), ref.Namespace, ref.Name)
	gone[ref.UID] = apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && string(owner.GetUID()) != ref.UID
}

// probe asks the API server to create, as a dry run, a policy that only the
// webhook refuses.
func (c *cluster) probe(ctx context.Context) doctor.Probe {
	src := doctor.AllowancePolicies
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": src.Group + "/" + src.Version,
		"kind":       "AllowancePolicy",
		"metadata":   map[string]any{"name": "kausality-doctor"},
		"spec": map[string]any{
			"match": map[string]any{"kind": "Probe", "fields": []any{"spec["}},
			"allow": []any{map[string]any{"kind": "Probe", "mutations": []any{"spec"}}},
		},
	}}

	_, err := c.client.Resource(schema.GroupVersionResource{Group: src.Group, Version: src.Version, Resource: src.Resource}).
		Create(ctx, policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})

	var status *apierrors.StatusError

	switch {
	case err == nil:
		return doctor.Probe{}
	case errors.As(err, &status) && strings.Contains(status.Error(), "admission webhook"):
		return doctor.Probe{Answered: true}
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook"):
		return doctor.Probe{}
	default:
		return doctor.Probe{Problem: err.Error()}
	}
}
