// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package right

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Verbs that the manager uses.
const (
	get   = "get"
	list  = "list"
	patch = "patch"
	watch = "watch"
)

// Kind is one that the API server serves.
type Kind struct {
	Group, Kind, Resource string
	// Crossplane is true of Claims, XRs and managed resources.
	Crossplane bool
	// Conditions is true of kinds whose conditions the manager writes: Claims and XRs.
	Conditions bool
}

func (k Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Right is one verb of one resource, or of a subresource as NAME/SUBRESOURCE.
type Right struct {
	Verb, Group, Resource string
}

// Split distinguishes the resource from the subresource, if any.
func (r Right) Split() (resource, sub string) {
	resource, sub, _ = strings.Cut(r.Resource, "/")

	return resource, sub
}

// Need is what the manager does with the objects of a resource.
type Need struct {
	schema.GroupResource

	// Only are the verbs it takes; empty for all that a governed kind takes.
	Only []string
	// Status is true where the status is written, too.
	Status bool
}

// Governed is the need of a kind that is governed: its objects are read as parents
// and watched, and annotated, kept by a finalizer and gated by patches.
func Governed(k Kind) Need {
	gr := k.groupResource()

	return Need{GroupResource: gr, Status: k.Conditions || byStatus(gr)}
}

// Read is the need of objects that are read as parents, or searched.
func Read(gr schema.GroupResource) Need {
	return Need{GroupResource: gr, Only: []string{get, list, watch}}
}

// Unsupported is what it takes to read objects, of get, list and watch, that a resource
// is not served with; for a person, and empty where it is served with all of that.
func Unsupported(verbs []string) string {
	return and(slices.DeleteFunc(Read(schema.GroupResource{}).verbs(), func(v string) bool { return slices.Contains(verbs, v) }))
}

// verbs are those that a need takes.
func (n Need) verbs() []string {
	if len(n.Only) > 0 {
		return n.Only
	}

	return []string{get, list, patch, watch}
}

// Rights are those that a need takes, in order.
func (n Need) Rights() []Right {
	verbs := n.verbs()

	out := make([]Right, 0, len(verbs)+1)
	for _, v := range verbs {
		out = append(out, Right{Verb: v, Group: n.Group, Resource: n.Resource})
	}

	if n.Status {
		out = append(out, Right{Verb: patch, Group: n.Group, Resource: n.Resource + "/status"})
	}

	return out
}

// byStatus reports whether objects of a resource are annotated by their status; see
// AnnotatedByStatus of package decision/stamp.
func byStatus(gr schema.GroupResource) bool {
	return gr == schema.GroupResource{Group: groupApps, Resource: "deployments"}
}

// groupApps is that of Deployments, and of all that an UpgradeAllowance may wait for
// beside Pods.
const groupApps = "apps"

// OfPolicy are the needs of the kinds that an AllowancePolicy names and the API
// server serves.
func OfPolicy(p *v1alpha1.AllowancePolicy, served []Kind) []Need {
	return ofKinds(append(named(p.Spec.Allow), policy.KindsOf(&p.Spec.Match)...), served)
}

// OfWindow are those of an UpgradeAllowance. What it waits for is read only.
func OfWindow(u *v1alpha1.UpgradeAllowance, served []Kind) []Need {
	out := ofKinds(named(u.Spec.Allow), served)

	when := u.Spec.ActivateWhen
	if when == nil {
		return out
	}

	gk := schema.GroupKind{Kind: "Pod"}
	if when.ControllerRef != nil {
		gk = schema.GroupKind{Group: groupApps, Kind: when.ControllerRef.Kind}
	}

	for _, k := range served {
		if k.Group == gk.Group && k.Kind == gk.Kind {
			out = append(out, Need{GroupResource: k.groupResource(), Only: []string{list, watch}})
		}
	}

	return ordered(out)
}

// OfEnforcement are those of an Enforcement, of all that it covers.
func OfEnforcement(e *v1alpha1.Enforcement, served []Kind) []Need {
	var out []Need

	for _, k := range served {
		if enforcement.Covers(&e.Spec.Match, k.groupResource()) {
			out = append(out, Governed(k))
		}
	}

	return ordered(out)
}

// named are the kinds that permissions name. Those about external objects name no
// objects of their own.
func named(allow []v1alpha1.Permission) []schema.GroupKind {
	out := make([]schema.GroupKind, 0, len(allow)+1)

	for _, p := range allow {
		if p.Relation != v1alpha1.RelationExternal {
			out = append(out, schema.GroupKind{Group: p.APIGroup, Kind: p.Kind})
		}
	}

	return out
}

// ofKinds are the needs of kinds by their names, which may leave out the group.
func ofKinds(names []schema.GroupKind, served []Kind) []Need {
	var out []Need

	for _, k := range served {
		if standing(k.Group) || !slices.ContainsFunc(names, func(n schema.GroupKind) bool {
			return n.Kind == k.Kind && (n.Group == "" || n.Group == k.Group)
		}) {
			continue
		}

		out = append(out, Governed(k))
	}

	return ordered(out)
}

// standing reports whether the manager has what it needs in a group at any time.
func standing(group string) bool { return group == v1alpha1.Group }

// Join has each resource once, with all that it is needed for, ordered by group.
func Join(lists ...[]Need) []Need { return ordered(slices.Concat(lists...)) }

func ordered(list []Need) []Need {
	byName := func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}

	out := make([]Need, 0, len(list))

	for _, n := range slices.SortedStableFunc(slices.Values(list), byName) {
		last := len(out) - 1

		if last >= 0 && out[last].GroupResource == n.GroupResource {
			out[last].Status = out[last].Status || n.Status
		}

		switch {
		case last < 0 || out[last].GroupResource != n.GroupResource:
			out = append(out, n)
		case len(out[last].Only) == 0 || len(n.Only) == 0:
			out[last].Only = nil
		default:
			all := slices.Concat(out[last].Only, n.Only)
			slices.Sort(all)
			out[last].Only = slices.Compact(all)
		}
	}

	return out
}
