// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keepTogether puts back what holds an object and what it is made of together,
// where somebody takes it away whose business that is not: our finalizer, and
// what Crossplane finds a Claim's XR and an XR's resources by. Without these a
// deletion leaves behind what it was to take along, and Crossplane makes anew
// what there is.
func (d *decider) keepTogether() {
	if d.Operation != OperationUpdate || d.Final || d.User.Name == "" || d.User.Name == d.Settings.Manager {
		return
	}

	d.keepFinalizer()

	if d.User.Name == d.Settings.Crossplane || !composes(d.Old.Object) {
		return
	}

	for _, field := range []string{"spec.crossplane.resourceRefs", "spec.resourceRefs"} {
		d.keepReferences(field)
	}

	d.keepBinding("spec.resourceRef")
	d.keepBinding("spec.claimRef")
}

// keepFinalizer keeps ours until we take it away.
func (d *decider) keepFinalizer() {
	if !slices.Contains(d.Old.GetFinalizers(), v1alpha1.Finalizer) || slices.Contains(d.New.GetFinalizers(), v1alpha1.Finalizer) {
		return
	}

	list := slices.Concat(resource.List(d.New.Object, "metadata", "finalizers"), []any{v1alpha1.Finalizer})
	resource.Map(d.New.Object, "metadata")["finalizers"] = list // It owns that map.

	d.kept("metadata.finalizers", "%s goes by itself once it is settled what becomes of what %s stands for; "+
		"where Kausality is to be removed, run: kubectl kausality uninstall", v1alpha1.Finalizer, d.title())
}

// keepReferences keeps each of the references to what an XR is made of. More may
// come: that is how somebody has it take over what another left behind.
func (d *decider) keepReferences(field string) {
	path := strings.Split(field, ".")
	was, is := resource.List(d.Old.Object, path...), resource.List(d.New.Object, path...)

	missing := func(list []any) func(any) bool {
		return func(e any) bool { return !slices.ContainsFunc(list, func(o any) bool { return sameReference(e, o) }) }
	}

	if !slices.ContainsFunc(was, missing(is)) {
		return
	}

	d.put(path, slices.Concat(was, slices.DeleteFunc(slices.Clone(is), func(e any) bool { return !missing(was)(e) })))
	d.kept(field, "Crossplane finds by it what %s is made of, and would make it anew; what is to go, delete, "+
		"and what was left behind, release: kubectl kausality release", d.title())
}

// keepBinding keeps the reference between a Claim and its XR, while both are
// there.
func (d *decider) keepBinding(field string) {
	path := strings.Split(field, ".")

	was, _ := resource.Value(d.Old.Object, path...)
	is, _ := resource.Value(d.New.Object, path...)

	if was == nil || d.ParentGone || sameReference(was, is) {
		return
	}

	d.put(path, was)
	d.kept(field, "Crossplane finds by it what %s is bound to", d.title())
}

// sameReference says whether two references are to the same object, be it in
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

// composes says whether an object is a Claim or XR that Crossplane has found a
// Composition for. Others have fields of such names, too.
func composes(object map[string]any) bool {
	return resource.Map(object, "spec", "crossplane") != nil || resource.Map(object, "spec", "compositionRef") != nil
}

// put sets a field of the new object below its spec, and leaves what that shares
// with others as it is.
func (d *decider) put(path []string, value any) {
	in := d.New.Object

	for _, key := range path[:len(path)-1] {
		own := maps.Clone(resource.Map(in, key))
		if own == nil {
			own = map[string]any{}
		}

		in[key] = own
		in = own
	}

	in[path[len(path)-1]] = value
}

// kept notes that a field was put back, and tells whoever asked why.
func (d *decider) kept(field, why string, args ...any) {
	d.decision.Kept = append(d.decision.Kept, field)
	d.decision.Warnings = append(d.decision.Warnings, fmt.Sprintf("%s: %s stays: ", d.title(), field)+fmt.Sprintf(why, args...))
}

// title is the object, for a person.
func (d *decider) title() string {
	return fmt.Sprintf("%s %q", d.groupKind().Kind, resource.Name(d.subject()))
}
