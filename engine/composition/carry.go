// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// carried are the annotations a Composition applies to what it composes. The
// gate's record is the gate controller's alone.
func carried() []string {
	return []string{
		v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace, v1alpha1.AnnotationRecord,
		v1alpha1.AnnotationDesiredPolicies, v1alpha1.AnnotationLastUpgrade,
	}
}

// gated reports whether an observed resource has a gate: a managed resource of a
// kind with spec.managementPolicies, which has a default wherever it is.
func gated(observed *unstructured.Unstructured) bool {
	_, ok := resource.Value(observed.Object, "spec", "managementPolicies")

	return resource.IsManaged(observed) && (ok || resource.Annotation(observed, v1alpha1.AnnotationGate) != "")
}

// wanted are the management policies a Composition asks for.
func wanted(desired *unstructured.Unstructured) []string {
	if _, ok := resource.Value(desired.Object, "spec", "managementPolicies"); ok {
		return resource.Strings(desired.Object, "spec", "managementPolicies")
	}

	return []string{management.ActionAll}
}

// leaveToGate leaves out what the gate alone has, and as it is to be. Crossplane would own it too, until the next move of the
// gate: that would be one write more after each move, and an event for the provider.
func (r composed) leaveToGate(desired *unstructured.Unstructured) {
	if desired == nil || r.Observed == nil || desired.GroupVersionKind() != r.Observed.GroupVersionKind() {
		return
	}

	r.leave(desired, "spec", "managementPolicies")
	r.leave(desired, "metadata", "annotations", v1alpha1.AnnotationAllowances)
}

// leave leaves out the field at a path where the gate alone has it, and as it is to be.
func (r composed) leave(desired *unstructured.Unstructured, at ...string) {
	have, _ := resource.Value(r.Observed.Object, at...)

	want, wished := resource.Value(desired.Object, at...)
	if !wished || !change.Equal(want, have) {
		return
	}

	fields := make([]string, len(at))
	for i, name := range at {
		fields[i] = "f:" + name
	}

	_, has := resource.Value(managedfields.AppliedBy(r.Observed, gate.Manager), fields...)
	_, both := resource.Value(managedfields.AppliedBy(r.Observed, r.manager), fields...)

	if has && !both {
		desired.Object = without(desired.Object, at...)
	}
}

// without is an object without the field at a path, which has it; the object is not modified.
func without(object map[string]any, at ...string) map[string]any {
	out := maps.Clone(object)
	if len(at) == 1 {
		delete(out, at[0])
	} else {
		out[at[0]] = without(resource.Map(object, at[0]), at[1:]...)
	}

	return out
}

// recordWanted notes what the Composition asked for, the gate's upper bound.
func recordWanted(u *unstructured.Unstructured, want []string) {
	annotate(u, v1alpha1.AnnotationDesiredPolicies, management.FormatPolicies(want))
}

// carry makes desired state out of what only Kausality writes: annotations as
// observed, and spec.managementPolicies as observed. A field that is left out
// can fall back to its default, which is fully open: [composed.leaveToGate]
// leaves it out later only where the gate controller applies it. In mode Audit
// what has no gate gets none.
func (r composed) carry(desired *unstructured.Unstructured) {
	observed, want := r.Observed, wanted(desired)

	stampOn(desired, observed)
	withdrawDeletion(desired)

	if !gated(observed) || r.mode == v1alpha1.ModeAudit && !management.Governed(observed) {
		return
	}

	recordWanted(desired, want)

	if was, err := management.ParseDesired(observed); err == nil && was.Policies != nil && len(want) == 0 {
		was.Mode = ""
		annotate(desired, v1alpha1.AnnotationDesiredPolicies, management.FormatDesired(management.Paused(was)))
	}

	if have, ok := resource.Value(observed.Object, "spec", "managementPolicies"); ok {
		setField(desired, have)
	} else {
		unstructured.RemoveNestedField(desired.Object, "spec", "managementPolicies")
	}
}

// stampOn copies our annotations from a decided object.
func stampOn(desired, decided *unstructured.Unstructured) {
	for _, key := range carried() {
		annotate(desired, key, resource.Annotation(decided, key))
	}
}

// withdrawDeletion takes away the allowances to delete what is not to be deleted, or no
// longer.
func withdrawDeletion(u *unstructured.Unstructured) {
	list, err := allowance.Parse(u)
	if err != nil || !slices.ContainsFunc(list, allowance.OfDeletion) {
		return
	}

	annotate(u, v1alpha1.AnnotationAllowances, allowance.FormatList(slices.DeleteFunc(list, allowance.OfDeletion)))
}

// keep makes desired state that changes nothing.
func keep(observed *unstructured.Unstructured, fields managedfields.Fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: managedfields.Extract(observed.Object, fields)}
	u.SetAPIVersion(observed.GetAPIVersion())
	u.SetKind(observed.GetKind())
	stampOn(u, observed)
	annotate(u, v1alpha1.AnnotationWish, resource.Annotation(observed, v1alpha1.AnnotationWish))
	withdrawDeletion(u)

	if have, ok := resource.Value(observed.Object, "spec", "managementPolicies"); ok && resource.IsManaged(observed) {
		setField(u, have)
	}

	return u
}

// hold is the resource as it is, applied to the version that was seen alone: its update, deletion or replacement is held.
func (r composed) hold(fields managedfields.Fields) *unstructured.Unstructured {
	u := keep(r.Observed, fields)
	r.asSeen(u)

	return u
}

// whole is the resource as it is, as of now, with what others than Crossplane wrote,
// but for what the API server and Kausality write.
func (r composed) whole() *unstructured.Unstructured {
	u := r.hold(managedfields.None())

	for key, value := range r.Observed.Object {
		if key != "metadata" && key != "status" {
			u.Object[key] = value
		}
	}

	for key, value := range r.Observed.GetAnnotations() {
		if !strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			annotate(u, key, value)
		}
	}

	if labels := r.Observed.GetLabels(); len(labels) > 0 {
		u.SetLabels(labels)
	}

	return u
}

// asSeen has a resource applied to the version alone that was seen: who has edited
// it since then is not to be undone. What Crossplane writes to before it applies
// it has another version by then: it would be in conflict with itself.
func (r composed) asSeen(u *unstructured.Unstructured) {
	if managedfields.Upgraded(r.Observed) {
		u.SetResourceVersion(r.Observed.GetResourceVersion())
	}
}

// Crossplane puts these on what it composes, after the pipeline.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/composite/composition_render.go,
// RenderComposedResourceMetadata.
const (
	renderedPrefix = "crossplane.io/"
	labelComposite = renderedPrefix + "composite"
)

// prepareCreate gives a new object the name prefix and the namespace that
// Crossplane will give it, so that its trace can name it and windows find it.
func prepareCreate(u, xr *unstructured.Unstructured) {
	if resource.Name(u) == "" {
		prefix := resource.String(xr.Object, "metadata", "labels", labelComposite)
		if prefix == "" {
			prefix = xr.GetName()
		}

		u.SetGenerateName(prefix + "-")
	}

	if xr.GetNamespace() != "" {
		u.SetNamespace(xr.GetNamespace())
	}
}

// dropPrepared takes away again what prepareCreate added.
func dropPrepared(u, desired *unstructured.Unstructured) {
	if desired.GetGenerateName() == "" {
		unstructured.RemoveNestedField(u.Object, "metadata", "generateName")
	}

	if desired.GetNamespace() == "" {
		unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
	}
}

// carryAnnotations puts our annotations of desired state on what applying it makes of an observed
// object, and takes off those that are applied and not desired. Applied are the annotations that
// the XR's manager applies, as fieldsV1.
func carryAnnotations(merged, desired *unstructured.Unstructured, applied map[string]any) {
	meta := maps.Clone(resource.Map(merged.Object, "metadata"))
	out, want := maps.Clone(resource.Map(meta, "annotations")), resource.Map(desired.Object, "metadata", "annotations")

	for name := range applied {
		key, _ := strings.CutPrefix(name, "f:")
		if _, ok := want[key]; !ok && strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			delete(out, key)
		}
	}

	for key, v := range want {
		if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			if out == nil {
				out = map[string]any{}
			}

			out[key] = v
		}
	}

	if len(out) > 0 {
		meta["annotations"] = out
	} else {
		delete(meta, "annotations")
	}

	merged.Object["metadata"] = meta
}

// rendered reports whether Crossplane adds a label or annotation to what a pipeline desires.
func rendered(key string) bool {
	return strings.HasPrefix(key, renderedPrefix) && key != identity.AnnotationExternalName
}

// keepRendered puts the labels and annotations on desired state that Crossplane has applied,
// and will add to it: those that it applies, as fieldsV1 of the metadata.
func keepRendered(desired, observed *unstructured.Unstructured, applied map[string]any) {
	meta := resource.Map(desired.Object, "metadata")
	if meta == nil {
		meta = map[string]any{}
	}

	for _, part := range []string{"labels", "annotations"} {
		have, out := resource.Map(observed.Object, "metadata", part), maps.Clone(resource.Map(meta, part))

		for name := range resource.Map(applied, "f:"+part) {
			key, _ := strings.CutPrefix(name, "f:")
			if v, ok := have[key]; ok && out[key] == nil && rendered(key) {
				if out == nil {
					out = map[string]any{}
				}

				out[key] = v
			}
		}

		if out != nil {
			meta[part] = out
		}
	}

	if len(meta) > 0 {
		desired.Object["metadata"] = meta
	}
}

// addRendered adds to what applying desired state makes of an observed object
// what Crossplane will add to that state: it is no removal that no step of the
// pipeline mentions it.
func addRendered(u, observed *unstructured.Unstructured) {
	have := resource.Map(observed.Object, "metadata")
	meta := maps.Clone(resource.Map(u.Object, "metadata"))

	if meta == nil {
		meta = map[string]any{}
	}

	if refs, ok := have["ownerReferences"]; ok && meta["ownerReferences"] == nil {
		meta["ownerReferences"] = refs
	}

	for _, key := range []string{"labels", "annotations"} {
		from, into := resource.Map(have, key), maps.Clone(resource.Map(meta, key))

		for k, v := range from {
			if _, ok := into[k]; !ok && rendered(k) {
				if into == nil {
					into = map[string]any{}
				}

				into[k] = v
			}
		}

		if into != nil {
			meta[key] = into
		}
	}

	u.Object["metadata"] = meta
}

// writable returns an object with separate maps where this package writes:
// metadata, its annotations, and spec. Everything else is shared. Our annotations
// are left out: a Composition may have copied those of its XR.
func writable(u *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(u.Object)

	for _, key := range []string{"metadata", "spec"} {
		if m := resource.Map(object, key); m != nil {
			object[key] = maps.Clone(m)
		}
	}

	meta := resource.Map(object, "metadata")
	if annotations := resource.Map(meta, "annotations"); annotations != nil {
		theirs := maps.Clone(annotations)
		maps.DeleteFunc(theirs, func(key string, _ any) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) })

		if meta["annotations"] = theirs; len(theirs) == 0 {
			delete(meta, "annotations")
		}
	}

	return &unstructured.Unstructured{Object: object}
}

// annotate sets an annotation; the empty value removes it.
func annotate(u *unstructured.Unstructured, key, value string) {
	meta := resource.Map(u.Object, "metadata")
	annotations := resource.Map(meta, "annotations")

	switch {
	case value == "":
		delete(annotations, key)
	case meta == nil:
		u.Object["metadata"] = map[string]any{"annotations": map[string]any{key: value}}
	case annotations == nil:
		meta["annotations"] = map[string]any{key: value}
	default:
		annotations[key] = value
	}
}

func setPolicies(u *unstructured.Unstructured, set []string) {
	setField(u, resource.Values(set))
}

func setField(u *unstructured.Unstructured, policies any) {
	spec := resource.Map(u.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
		u.Object["spec"] = spec
	}

	spec["managementPolicies"] = policies
}
