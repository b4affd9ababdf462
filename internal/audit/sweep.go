// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Options say how a cluster is judged.
type Options struct {
	// Now is the time.
	Now time.Time
	// Gate says for how long gates may be open.
	Gate gate.Options
	// Revisions are the CompositionRevisions there are, by name: whether they run the
	// function.
	Revisions map[string]bool
	// HeldLonger leaves out what is held for less, and OpenLonger gates that are open for
	// less and not overdue. What nobody knows the time of is not left out.
	HeldLonger, OpenLonger time.Duration
	// Behind is by how much the objects of one kind may be behind those of another: an owner
	// that is not there may only not be known yet. Zero where it is asked for itself.
	Behind time.Duration
}

// Sweep judges the objects of a cluster one after another. It keeps what it finds, and
// of the objects only what it takes to judge others.
type Sweep struct {
	opts   Options
	config Config
	// inForce are the policies that are not in Shadow mode.
	inForce []v1alpha1.AllowancePolicy
	found   []Finding

	// homes are XRs, by UID: whose they are.
	homes map[types.UID]home
	// owned is what is to be said of managed resources, by their owner.
	owned map[resource.Reference][]owned
	// claims are the XRs that Claims name of which it is said what is held, by UID.
	claims map[types.UID]Ref
	// composed are kinds that XRs compose that run the function, roots those of what
	// Crossplane did not make and has no parent.
	composed, roots map[schema.GroupVersionKind]bool
	// composites are the kinds of XRs, which the function is about.
	composites map[schema.GroupKind]bool
	// names are the XRs that were seen, by kind and name.
	names map[string]bool
}

// home is whose an XR is.
type home struct {
	// namespace of its Claim, or its own.
	namespace string
	// owner is the UID of the XR that composes it; empty for none.
	owner types.UID
}

// owned is a managed resource that has an owner.
type owned struct {
	Ref Ref

	// losable is true where it is left behind if that is gone; there is what is to be said
	// if it is not.
	losable bool
	there   []Finding
}

// NewSweep makes a Sweep by what is asked for.
func NewSweep(opts Options, config Config) *Sweep {
	return &Sweep{
		opts: opts, config: config, inForce: config.Admission.InForce().Policies,
		homes: map[types.UID]home{}, owned: map[resource.Reference][]owned{}, claims: map[types.UID]Ref{},
		composed: map[schema.GroupVersionKind]bool{}, roots: map[schema.GroupVersionKind]bool{}, composites: map[schema.GroupKind]bool{},
		names: map[string]bool{},
	}
}

// Object judges one object, whatever it is; an XR or Claim may come before or after what
// is made for it. Of the whole of it only metadata, conditions and references to other
// objects are read; for drift, spec.forProvider and status.atProvider, too.
func (s *Sweep) Object(u *unstructured.Unstructured) {
	found := slices.Concat(Misread(u), Edited(u), Gate(u, s.opts.Now, s.opts.Gate), heldBy(u))
	ref, owns := resource.ParentOf(u)

	switch {
	case resource.IsManaged(u) && owns:
		s.owned[ref] = append(s.owned[ref], owned{
			Ref: RefOf(u), losable: losable(u) && !s.behind(u), there: s.homed(u, Left(u, ref, false, s.opts.Now)),
		})
	case resource.IsManaged(u):
		found = append(found, Left(u, ref, false, s.opts.Now)...)
	case resource.IsClaim(u):
		s.claim(u)
	case resource.IsComposite(u):
		found = append(found, s.composite(u)...)
	case !owns:
		s.roots[u.GroupVersionKind()] = true
	}

	s.found = append(s.found, s.homed(u, slices.DeleteFunc(found, s.tooYoung))...)
}

// behind reports whether the owner of an object may not be known yet.
func (s *Sweep) behind(u *unstructured.Unstructured) bool {
	return s.opts.Now.Sub(u.GetCreationTimestamp().Time) < s.opts.Behind
}

// Record judges the record of an external object whose managed resource is gone: data is
// that of the Secret with that record.
func (s *Sweep) Record(secret Ref, data map[string][]byte) {
	f := Recorded(secret, data)
	f.Namespace = ""
	s.found = append(s.found, f)
}

// Unread notes what could not be looked at, and why. A namespace is of what is in one.
func (s *Sweep) Unread(what, namespace, why string) {
	f := newFinding(Unread, Ref{Kind: what}, "cannot look at "+what+": "+why, "run it as somebody who may list it")
	f.Namespace = namespace
	s.found = append(s.found, f)
}

// tooYoung reports whether a finding is left out for its age.
func (s *Sweep) tooYoung(f Finding) bool {
	if f.Since == nil {
		return false
	}

	age := s.opts.Now.Sub(f.Since.Time)

	return f.Rule == Held && age < s.opts.HeldLonger || f.Rule == GateOpen && age < s.opts.OpenLonger
}

// homed says which namespace findings on a cluster-scoped object matter to: for now by
// the XR that owns it.
func (s *Sweep) homed(u *unstructured.Unstructured, list []Finding) []Finding {
	for i := range list {
		list[i] = aged(list[i], s.opts.Now)

		if resource.IsComposite(u) {
			list[i].owner = u.GetUID()
		} else if ref, ok := resource.ParentOf(u); ok {
			list[i].owner = types.UID(ref.UID)
		}
	}

	return list
}

// claim remembers which XR says what is held for a Claim.
func (s *Sweep) claim(u *unstructured.Unstructured) {
	ref := resource.Map(u.Object, "spec", "resourceRef")
	s.claims[u.GetUID()] = Ref{
		APIVersion: resource.String(ref, "apiVersion"), Kind: resource.String(ref, "kind"), Name: resource.String(ref, "name"),
	}
}

// composite remembers whose an XR is and what it composes, and judges whether the
// function runs for it.
func (s *Sweep) composite(u *unstructured.Unstructured) []Finding {
	gk := u.GroupVersionKind().GroupKind()
	s.composites[gk] = true
	s.names[gk.String()+" "+u.GetName()] = true

	h := home{namespace: u.GetNamespace()}
	named := s.named(gk)

	if claim, ok := resource.ClaimOf(u); ok {
		h.namespace, named = claim.Namespace, named || s.named(claim.GroupKind())
	} else if ref, ok := resource.ParentOf(u); ok {
		h.owner = types.UID(ref.UID)
	}

	s.homes[u.GetUID()] = h

	if resource.RunsFor(u, s.opts.Revisions) {
		for _, ref := range resource.Composed(u) {
			s.composed[ref.GroupVersionKind()] = true
		}

		return nil
	}

	if _, known := s.opts.Revisions[resource.RevisionOf(u)]; !known || resource.Deleting(u) {
		return nil // Which Composition makes it is not known.
	}

	return []Finding{functionMissing(u, named)}
}

// named reports whether a policy in force is about objects of a kind.
func (s *Sweep) named(gk schema.GroupKind) bool {
	return slices.ContainsFunc(s.inForce, func(p v1alpha1.AllowancePolicy) bool { return policy.IsAbout(&p.Spec.Match, gk) })
}

// Owners are what managed resources name as their owners and no XR that was seen is, in
// order: whether they are there has to be found out.
func (s *Sweep) Owners() []resource.Reference {
	var out []resource.Reference

	for ref := range s.owned {
		if _, seen := s.homes[types.UID(ref.UID)]; !seen {
			out = append(out, ref)
		}
	}

	slices.SortFunc(out, func(a, b resource.Reference) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})

	return out
}

// Kinds are those of which it has to be found out what they are: those that XRs compose
// by the function, and those of roots; in order.
func (s *Sweep) Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind

	for gvk := range s.composed {
		out = append(out, gvk)
	}

	for gvk := range s.roots {
		if !s.composed[gvk] {
			out = append(out, gvk)
		}
	}

	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })

	return out
}

// Found is what had to be found out beside.
type Found struct {
	// Gone are the owners that are not there any more.
	Gone map[resource.Reference]bool
	// Kinds are what is known of [Sweep.Kinds]; Managed is true of those whose objects
	// have gates. Of others nothing is said.
	Kinds []kind.Served
}

// Findings are all that was found, in order.
func (s *Sweep) Findings(more Found) []Finding {
	out := append(slices.Clone(s.found), s.config.findings(s.opts.Now)...)

	for ref, list := range s.owned {
		for _, o := range list {
			switch {
			case !more.Gone[ref]:
				out = append(out, o.there...)
			case o.losable:
				out = append(out, ownerGone(o.Ref, ref))
			}
		}
	}

	for _, k := range more.Kinds {
		gk := k.GVK.GroupKind()

		switch {
		case s.composed[k.GVK] && !s.composites[gk] && !s.config.asked(k):
			out = append(out, notGoverned(k))
		case s.roots[k.GVK] && !s.composed[k.GVK] && s.named(gk) && !s.config.enforced(k):
			out = append(out, notEnforced(k))
		}
	}

	out = slices.DeleteFunc(out, s.saidOfXR)

	for i := range out {
		s.settle(&out[i])
	}

	slices.SortStableFunc(out, Compare)

	return out
}

// saidOfXR reports whether a finding is a Claim's copy of what its XR says: the function's
// condition is on both.
func (s *Sweep) saidOfXR(f Finding) bool {
	xr, ok := s.claims[f.Object.UID]
	if !ok || f.Rule != PassedNotAllowed && (f.Rule != Held || f.Part != partComposed) {
		return false
	}

	gk := schema.FromAPIVersionAndKind(xr.APIVersion, xr.Kind).GroupKind()

	return s.names[gk.String()+" "+xr.Name]
}

// settle finds the namespace that a finding on a cluster-scoped object matters to.
func (s *Sweep) settle(f *Finding) {
	for uid, depth := f.owner, 0; f.Namespace == "" && uid != "" && depth < maxLevels; depth++ {
		h := s.homes[uid]
		f.Namespace, uid = h.namespace, h.owner
	}
}

// maxLevels is how many XRs may be above each other.
const maxLevels = 16
