// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// restoreLinks puts back what holds an object and what it is made of together,
// where somebody takes it away whose business that is not: our finalizer, and
// what Crossplane finds a Claim's XR and an XR's resources by. Without these a
// deletion leaves behind what it was to take along, and Crossplane makes anew
// what there is.
func (p *proposer) restoreLinks() {
	if p.Operation != OperationUpdate || p.User.Name == "" || p.byManager() {
		return
	}

	p.restoreFinalizer()
	p.blockDeletion()

	if p.byCrossplane() || !bound(p.Old.Object) {
		return
	}

	for _, field := range []string{"spec.crossplane.resourceRefs", "spec.resourceRefs"} {
		p.restoreReferences(field)
	}

	p.restoreBinding("spec.resourceRef")
	p.restoreBinding("spec.claimRef")
}

// restoreFinalizer puts our finalizer back until we take it away.
func (p *proposer) restoreFinalizer() {
	if !slices.Contains(p.Old.GetFinalizers(), v1alpha1.Finalizer) || slices.Contains(p.out.object.GetFinalizers(), v1alpha1.Finalizer) {
		return
	}

	addFinalizer(p.out.object)
	p.recordKept("metadata.finalizers", "Kausality removes "+v1alpha1.Finalizer+
		" itself. To remove Kausality: kubectl kausality uninstall")
}

// blockDeletion gives an XR our finalizer where Crossplane is about to make what may have a gate: in the write in which it
// refers to that first. Nobody has to write it later, when Crossplane writes to the XR most.
func (p *proposer) blockDeletion() {
	u := p.out.object
	if !p.Settings.Gates || p.Operation != OperationUpdate || !p.byCrossplane() || resource.Deleting(u) || !resource.Composing(u) ||
		slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) {
		return
	}

	custom := func(r resource.Reference) bool { return !resource.BuiltIn(r.GroupKind().Group) }
	if slices.ContainsFunc(resource.Composed(u), custom) &&
		slices.ContainsFunc(p.Policies.For(p.groupKind()), (*policy.Policy).ReachesOutside) {
		addFinalizer(u)
	}
}

// recordBuilding records that an XR is built up, in the write that refers to the first of what it composes: what the
// composition function says of that is taken away where a run of the pipeline fails. One that refers to something from the
// beginning, as one that is restored does, was built up before.
func (s *stamper) recordBuilding() {
	switch {
	case s.Operation == OperationDelete || !resource.IsComposite(s.object) || len(resource.Composed(s.object)) == 0:
	case s.Operation == OperationCreate:
		annotate(s.object, v1alpha1.AnnotationInitialized, resource.FormatInitialized(v1alpha1.Initialized{}))
	case len(resource.Composed(s.Old)) == 0 && !resource.SeenReady(s.Old, s.Now):
		annotate(s.object, v1alpha1.AnnotationInitialized, resource.FormatInitialized(v1alpha1.Initialized{Building: true}))
	}
}

// addFinalizer gives an object of which the metadata is not shared our finalizer.
func addFinalizer(u *unstructured.Unstructured) {
	meta := resource.Map(u.Object, "metadata")
	meta["finalizers"] = slices.Concat(resource.List(meta, "finalizers"), []any{v1alpha1.Finalizer})
}

// restoreReferences puts back each of the references to what an XR is made of. More may
// come: that is how somebody has it take over what another orphaned.
func (p *proposer) restoreReferences(field string) {
	path := strings.Split(field, ".")
	was, is := resource.List(p.Old.Object, path...), resource.List(p.out.object.Object, path...)

	missing := func(list []any) func(any) bool {
		return func(e any) bool { return !slices.ContainsFunc(list, func(o any) bool { return sameReference(e, o) }) }
	}

	if !slices.ContainsFunc(was, missing(is)) {
		return
	}

	p.put(path, slices.Concat(was, slices.DeleteFunc(slices.Clone(is), func(e any) bool { return !missing(was)(e) })))
	p.recordKept(field, "Crossplane finds composed resources by it. To remove one, delete it; to keep an orphan: kubectl kausality release")
}

// restoreBinding puts back the reference between a Claim and its XR, while both are
// there.
func (p *proposer) restoreBinding(field string) {
	path := strings.Split(field, ".")

	was, _ := resource.Value(p.Old.Object, path...)
	is, _ := resource.Value(p.out.object.Object, path...)

	if was == nil || p.ParentGone || sameReference(was, is) {
		return
	}

	p.put(path, was)
	p.recordKept(field, "it binds the claim and its composite resource")
}

// sameReference reports whether two references are to the same object, be it in
// another version of its API.
func sameReference(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)

	group := func(m map[string]any) string {
		g, _, _ := strings.Cut(resource.String(m, "apiVersion"), "/")

		return g
	}

	return change.Equal(x["kind"], y["kind"]) && change.Equal(x["name"], y["name"]) &&
		change.Equal(x["namespace"], y["namespace"]) && group(x) == group(y)
}

// bound reports whether an object is a Claim or XR that Crossplane has found a
// Composition for. Others have fields of such names, too.
func bound(object map[string]any) bool {
	return resource.Map(object, "spec", "crossplane") != nil || resource.Map(object, "spec", "compositionRef") != nil
}

// put sets a field of the new object below its spec, and leaves what that shares
// with others as it is.
func (p *proposer) put(path []string, value any) {
	in := p.out.object.Object

	for _, key := range path[:len(path)-1] {
		copied := maps.Clone(resource.Map(in, key))
		if copied == nil {
			copied = map[string]any{}
		}

		in[key] = copied
		in = copied
	}

	in[path[len(path)-1]] = value
}

// recordKept records that a field was put back, and warns the user with the reason.
func (p *proposer) recordKept(field, why string) {
	p.out.kept = append(p.out.kept, field)
	p.out.warnings = append(p.out.warnings, fmt.Sprintf("%s: %s is unchanged: %s", p.title(), field, why))
}

// title is the object, for a person.
func (l *lineage) title() string {
	return fmt.Sprintf("%s %q", l.groupKind().Kind, resource.Name(l.target()))
}
