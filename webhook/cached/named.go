// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// namedKinds are the kinds that policies and windows name. A kind without a
// group is one of any group.
type namedKinds map[schema.GroupKind]bool

func kindsOf(policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance) namedKinds {
	out := namedKinds{}

	add := func(allow []v1alpha1.Permission) {
		for _, p := range allow {
			if p.Kind != "" {
				out[schema.GroupKind{Group: p.APIGroup, Kind: p.Kind}] = true
			}
		}
	}

	policies = policy.InForce(policies)
	for i := range policies {
		for _, gk := range policy.KindsOf(&policies[i].Spec.Match) {
			out[gk] = true
		}

		add(policies[i].Spec.Allow)
	}

	for i := range windows {
		add(windows[i].Spec.Allow)
	}

	return out
}

func (n namedKinds) has(gk schema.GroupKind) bool { return n[gk] || n[schema.GroupKind{Kind: gk.Kind}] }

// governed remembers the kinds that the webhook is asked about though no policy
// names them: those that an Enforcement names, and those that are composed.
type governed struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]bool
}

// Learn notes what the API server asks about. What an Enforcement covers that
// names no group in particular may be of any kind, and is not noted; nor is a
// kind of Kubernetes' own that no Enforcement names, for that is not composed of
// anything that has a gate.
func (g *governed) Learn(ask *request.Request) {
	covered := slices.DeleteFunc(slices.Clone(ask.Basis.Enforcements),
		func(e *enforcement.Enforcement) bool { return !e.Covers(ask.Resource) })
	named := slices.ContainsFunc(covered, func(e *enforcement.Enforcement) bool { return e.Names(ask.Resource) })
	gk := ObjectOf(ask).GroupVersionKind().GroupKind()

	if !named && (len(covered) > 0 || resource.BuiltIn(gk.Group)) {
		return
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	if g.kinds == nil || len(g.kinds) >= maxNewer {
		g.kinds = map[schema.GroupKind]bool{}
	}

	g.kinds[gk] = true
}

func (g *governed) has(gk schema.GroupKind) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.kinds[gk]
}

// ObjectOf is what the request is about: the new object, or the old one on
// delete.
func ObjectOf(ask *request.Request) *unstructured.Unstructured {
	if ask.New != nil {
		return ask.New
	}

	return ask.Old
}
