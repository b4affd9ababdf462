// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// Watched has the objects that are watched.
type Watched interface {
	// Kinds are those that are.
	Kinds() []schema.GroupVersionKind
	// List returns the objects of a kind, which are not to be modified; false where not
	// all of them are known yet.
	List(ctx context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, bool, error)
}

// judge judges what the caches have. Complete is false where they do not have all yet, and
// settled where more is to be known in a moment, be it of kinds.
func (r *Reconciler) judge(ctx context.Context, now time.Time) (found []audit.Finding, complete, settled bool, err error) {
	config, err := r.config(ctx)
	if err != nil {
		return nil, false, false, err
	}

	opts := audit.Options{Now: now, Revisions: r.Composed.Runs(), Gate: r.Gate, OpenLonger: audit.Grace, Behind: audit.Grace}
	opts.Gate.PolicyGate = r.Policies.Of(ctx)

	s := audit.NewSweep(opts, config)
	known := map[schema.GroupKind][]unstructured.Unstructured{}
	complete = true

	kinds := r.Watched.Kinds()
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })

	for _, gvk := range kinds {
		items, ok, err := r.Watched.List(ctx, gvk)
		if err != nil {
			return nil, false, false, err
		}

		if !ok {
			complete = false

			s.Unread(resourceOf(gvk), "", "the API server has not listed all of it yet")

			continue
		}

		known[gvk.GroupKind()] = items

		if gvk.GroupKind() == resource.RevisionKind() {
			continue
		}

		for i := range items {
			s.Object(&items[i])
		}
	}

	kindsOf, all := r.described(s.Kinds())
	found = s.Findings(audit.Found{Gone: gone(s.Owners(), known), Kinds: kindsOf})

	return found, complete, complete && all, nil
}

func resourceOf(gvk schema.GroupVersionKind) string { return gvk.GroupKind().String() }

// config reads what is asked for, from the cache.
func (r *Reconciler) config(ctx context.Context) (audit.Config, error) {
	policies := &v1alpha1.AllowancePolicyList{}
	bindings := &v1alpha1.AllowanceBindingList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, bindings, windows, enforcements} {
		if err := r.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return audit.Config{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	out := audit.Config{Bindings: bindings.Items}
	out.Admission.Policies, out.Admission.Windows, out.Admission.Enforcements = policies.Items, windows.Items, enforcements.Items

	return out, nil
}

// gone are the owners that are not among the objects of their kind, where all of these are
// known. Of others nobody can know.
func gone(owners []resource.Reference, known map[schema.GroupKind][]unstructured.Unstructured) map[resource.Reference]bool {
	out := map[resource.Reference]bool{}
	there := map[schema.GroupKind]map[types.UID]bool{}

	for _, ref := range owners {
		gk := ref.GroupKind()

		items, ok := known[gk]
		if !ok || ref.UID == "" {
			continue
		}

		if there[gk] == nil {
			there[gk] = make(map[types.UID]bool, len(items))
			for i := range items {
				there[gk][items[i].GetUID()] = true
			}
		}

		out[ref] = !there[gk][types.UID(ref.UID)]
	}

	return out
}

// described says what kinds are; false where it is not known of all of them yet.
func (r *Reconciler) described(list []schema.GroupVersionKind) (out []kind.Served, all bool) {
	for _, gvk := range list {
		gated, known := r.Composed.Gates(gvk.GroupKind())
		if !known {
			return nil, false
		}

		m, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			continue // It is not served any more, or the next time.
		}

		out = append(out, kind.Served{GVK: gvk, Resource: m.Resource.Resource, Managed: gated})
	}

	return out, true
}
