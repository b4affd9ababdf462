// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// restoreLinks puts back what holds an object and what it is made of together,
// where somebody takes it away whose business that is not: our finalizer, and
// what Crossplane finds a Claim's XR and an XR's resources by. Without these a
// deletion leaves behind what it was to take along, and Crossplane makes anew
// what there is.
func restoreLinks(o request.Objects, by request.Writer, gates bool, policies *policy.Set, out *proposal) {
	if o.Operation != request.OperationUpdate || by.User.Name == "" || by.IsManager() {
		return
	}

	restoreFinalizer(o, out)
	blockDeletion(o, by, gates, policies, out.object)

	if by.IsCrossplane() || !bound(o.Old.Object) {
		return
	}

	for _, field := range []string{"spec.crossplane.resourceRefs", "spec.resourceRefs"} {
		restoreReferences(o, out, field)
	}

	restoreBinding(o, out, "spec.resourceRef")
	restoreBinding(o, out, "spec.claimRef")
}

// restoreFinalizer puts our finalizer back until we take it away.
func restoreFinalizer(o request.Objects, out *proposal) {
	if !slices.Contains(o.Old.GetFinalizers(), v1alpha1.Finalizer) || slices.Contains(out.object.GetFinalizers(), v1alpha1.Finalizer) {
		return
	}

	AddFinalizer(out.object)
	recordKept(o, out, "metadata.finalizers", "Kausality removes "+v1alpha1.Finalizer+
		" itself. To remove Kausality: kubectl kausality uninstall")
}

// blockDeletion gives an XR our finalizer where Crossplane is about to make what may have a gate: in the write in which it
// refers to that first. Nobody has to write it later, when Crossplane writes to the XR most.
func blockDeletion(o request.Objects, by request.Writer, gates bool, policies *policy.Set, u *unstructured.Unstructured) {
	if !gates || o.Operation != request.OperationUpdate || !by.IsCrossplane() || resource.Deleting(u) || !resource.Composing(u) ||
		slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) {
		return
	}

	custom := func(r resource.Reference) bool { return !resource.BuiltIn(r.GroupKind().Group) }
	if slices.ContainsFunc(resource.Composed(u), custom) &&
		slices.ContainsFunc(policies.For(o.GroupKind()), (*policy.Policy).ReachesOutside) {
		AddFinalizer(u)
	}
}

// RecordBuilding records that an XR is built up, in the write that refers to the first of what it composes: what the
// composition function says of that is taken away where a run of the pipeline fails. One that refers to something from the
// beginning, as one that is restored does, was built up before.
func RecordBuilding(o request.Objects, now time.Time, object *unstructured.Unstructured) {
	switch {
	case o.Operation == request.OperationDelete || !resource.IsComposite(object) || len(resource.Composed(object)) == 0:
	case o.Operation == request.OperationCreate:
		Annotate(object, v1alpha1.AnnotationInitialized, resource.FormatInitialized(v1alpha1.Initialized{}))
	case len(resource.Composed(o.Old)) == 0 && !resource.SeenReady(o.Old, now):
		Annotate(object, v1alpha1.AnnotationInitialized, resource.FormatInitialized(v1alpha1.Initialized{Building: true}))
	}
}

// AddFinalizer gives an object of which the metadata is not shared our finalizer.
func AddFinalizer(u *unstructured.Unstructured) {
	meta := resource.Map(u.Object, "metadata")
	meta["finalizers"] = slices.Concat(resource.List(meta, "finalizers"), []any{v1alpha1.Finalizer})
}

// restoreReferences puts back each of the references to what an XR is made of. More may
// come: that is how somebody has it take over what another orphaned.
func restoreReferences(o request.Objects, out *proposal, field string) {
	path := strings.Split(field, ".")
	was, is := resource.List(o.Old.Object, path...), resource.List(out.object.Object, path...)

	missing := func(list []any) func(any) bool {
		return func(e any) bool { return !slices.ContainsFunc(list, func(o any) bool { return sameReference(e, o) }) }
	}

	if !slices.ContainsFunc(was, missing(is)) {
		return
	}

	put(out, path, slices.Concat(was, slices.DeleteFunc(slices.Clone(is), func(e any) bool { return !missing(was)(e) })))
	recordKept(o, out, field, "Crossplane finds composed resources by it. "+
		"To remove one, delete it; to keep an orphan: kubectl kausality release")
}

// restoreBinding puts back the reference between a Claim and its XR, while both are
// there.
func restoreBinding(o request.Objects, out *proposal, field string) {
	path := strings.Split(field, ".")

	was, _ := resource.Value(o.Old.Object, path...)
	is, _ := resource.Value(out.object.Object, path...)

	if was == nil || o.ParentGone || sameReference(was, is) {
		return
	}

	put(out, path, was)
	recordKept(o, out, field, "it binds the claim and its composite resource")
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
func put(out *proposal, path []string, value any) {
	in := out.object.Object

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
func recordKept(o request.Objects, out *proposal, field, why string) {
	out.Kept = append(out.Kept, field)
	out.Warnings = append(out.Warnings, fmt.Sprintf("%s: %s is unchanged: %s", o.Title(), field, why))
}
