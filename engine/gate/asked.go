// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// AnnotationExternalName says which external object a managed resource stands
// for.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/meta/meta.go.
const AnnotationExternalName = "crossplane.io/external-name"

// Governed reports whether a managed resource is ours to gate: its Composition
// runs the function, or we gated it before.
func Governed(u *unstructured.Unstructured) bool {
	return resource.IsManaged(u) && (resource.Annotation(u, v1alpha1.AnnotationManagementPolicies) != "" ||
		resource.Annotation(u, v1alpha1.AnnotationGate) != "")
}

// Exposed reports whether the provider of a managed resource may act on what is
// stored of it as soon as it sees it.
func Exposed(u *unstructured.Unstructured) bool { return len(Acting(currentOf(u))) > 0 }

// ParseAsked reads kausality.io/asked; nil without an error means that the
// resource is as it was asked for.
func ParseAsked(u *unstructured.Unstructured) (*v1alpha1.AskedRecord, error) {
	text := resource.Annotation(u, v1alpha1.AnnotationAsked)
	if text == "" {
		return nil, nil //nolint:nilnil // Absent is no error and no record.
	}

	rec := &v1alpha1.AskedRecord{}
	if err := yaml.Unmarshal([]byte(text), rec); err != nil {
		return nil, fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationAsked, err)
	}

	return rec, nil
}

// AskedFor returns a managed resource as it was asked for: itself, or one that
// shares with it all that it does not have to put back.
func AskedFor(u *unstructured.Unstructured, rec *v1alpha1.AskedRecord) (*unstructured.Unstructured, error) {
	if rec == nil {
		return u, nil
	}

	stored, err := utiljson.Marshal(resource.Map(u.Object, "spec"))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the spec: %w", err)
	}

	patch, err := utiljson.Marshal(rec.Spec)
	if err != nil {
		return nil, fmt.Errorf("cannot encode annotation %q: %w", v1alpha1.AnnotationAsked, err)
	}

	asked, err := jsonpatch.MergePatch(stored, patch)
	if err != nil {
		return nil, fmt.Errorf("cannot apply annotation %q: %w", v1alpha1.AnnotationAsked, err)
	}

	var spec map[string]any
	if err := utiljson.Unmarshal(asked, &spec); err != nil {
		return nil, fmt.Errorf("cannot apply annotation %q: %w", v1alpha1.AnnotationAsked, err)
	}

	object := maps.Clone(u.Object)
	object["spec"] = spec
	out := &unstructured.Unstructured{Object: object}

	if rec.ExternalName != nil {
		rename(out, *rec.ExternalName)
	}

	return out, nil
}

// rename gives a managed resource that shares its metadata with another one an
// external name; the empty one takes it away.
func rename(u *unstructured.Unstructured, name string) {
	meta := maps.Clone(resource.Map(u.Object, "metadata"))
	annotations := maps.Clone(resource.Map(meta, "annotations"))

	if name == "" {
		delete(annotations, AnnotationExternalName)
	} else {
		annotations[AnnotationExternalName] = name // The record is an annotation, too.
	}

	meta["annotations"] = annotations
	u.Object["metadata"] = meta
}

// FormatAsked returns the value of kausality.io/asked that makes the spec of
// one version of a managed resource out of that which is stored; empty where
// they are the same.
func FormatAsked(rec v1alpha1.AskedRecord, stored, asked *unstructured.Unstructured) (string, error) {
	var err error
	if rec.Spec, err = specPatch(stored, asked); err != nil {
		return "", err
	}

	rec.ExternalName = nil
	if name := resource.Annotation(asked, AnnotationExternalName); name != resource.Annotation(stored, AnnotationExternalName) {
		rec.ExternalName = &name
	}

	if len(rec.Spec) == 0 && rec.ExternalName == nil {
		return "", nil
	}

	rec.Users = others(&rec)

	text, err := yaml.Marshal(rec)
	if err != nil {
		return "", fmt.Errorf("cannot write annotation %q: %w", v1alpha1.AnnotationAsked, err)
	}

	if len(text) > v1alpha1.MaxAskedBytes {
		return "", fmt.Errorf("cannot store what is not allowed: "+
			"annotation %q would remember %d bytes of what was asked for, and %d is the most",
			v1alpha1.AnnotationAsked, len(text), v1alpha1.MaxAskedBytes)
	}

	return string(text), nil
}

// others are who stored which of the fields of a record, but for its user.
func others(rec *v1alpha1.AskedRecord) map[string]string {
	out := map[string]string{}

	for _, path := range Away(rec) {
		if user := rec.Users[path.String()]; user != "" && user != rec.User {
			out[path.String()] = user
		}
	}

	return out
}

// specPatch makes one spec out of another: a JSON merge patch.
func specPatch(stored, asked *unstructured.Unstructured) (map[string]any, error) {
	from, err := utiljson.Marshal(resource.Map(stored.Object, "spec"))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the spec: %w", err)
	}

	to, err := utiljson.Marshal(resource.Map(asked.Object, "spec"))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the spec that was asked for: %w", err)
	}

	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the spec with what was asked for: %w", err)
	}

	var out map[string]any
	if err := utiljson.Unmarshal(patch, &out); err != nil {
		return nil, fmt.Errorf("cannot compare the spec with what was asked for: %w", err)
	}

	return out, nil
}

// RecordsSecret reports whether kausality.io/asked would have to hold a credential
// to make the spec of one version of a managed resource out of that which is
// stored.
func RecordsSecret(stored, asked *unstructured.Unstructured) bool {
	patch, err := specPatch(stored, asked)

	return err == nil && hidesIn(nil, patch, stored.Object, asked.Object)
}

// hidesIn reports whether a merge patch holds a credential of the objects. It goes
// down the patch with the path, for what a map is, such as a Secret, the patch
// does not repeat.
func hidesIn(path change.Path, patch map[string]any, objects ...map[string]any) bool {
	if path == nil {
		path = change.Path{fieldpath.Field("spec")}
	}

	for key, v := range patch {
		at := append(slices.Clone(path), fieldpath.Field(key))

		below, ok := v.(map[string]any)
		if ok && hidesIn(at, below, objects...) || !ok && mask.Hides(at, v, objects...) {
			return true
		}
	}

	return false
}

// putBackFirst has what is not allowed put back before a provider may act on
// it, whatever else there is to do.
func (p *planner) putBackFirst(plan Plan) Plan {
	if p.wanted == nil || plan.Move == CloseUp || len(Acting(plan.Policies)) == 0 {
		return plan
	}

	back := p.stay(p.whose() + ", and no allowance lets that out")
	back.Move, back.Spec, back.ExternalName = PutBack, p.wanted.Spec, p.wanted.ExternalName

	return back
}

// whose says which fields were changed by whom.
func (p *planner) whose() string {
	var (
		users []string
		by    = map[string][]string{}
	)

	for _, path := range Away(p.wanted) {
		user := p.wanted.User
		if other := p.wanted.Users[path.String()]; other != "" {
			user = other
		}

		if by[user] == nil {
			users = append(users, user)
		}

		by[user] = append(by[user], path.String())
	}

	texts := make([]string, len(users))
	for i, user := range users {
		texts[i] = fmt.Sprintf("%s was changed by %s", strings.Join(by[user], ", "), user)
	}

	return strings.Join(texts, "; ")
}

// Away are the fields of a managed resource that are stored otherwise than they
// were asked for, in order.
func Away(rec *v1alpha1.AskedRecord) []change.Path {
	out := changed(change.Path{fieldpath.Field("spec")}, rec.Spec)
	if rec.ExternalName != nil {
		out = append(out, change.Path{fieldpath.Field("metadata"), fieldpath.Field("annotations"), fieldpath.Field(AnnotationExternalName)})
	}

	return out
}

// changed are the fields that a merge patch changes, in order.
func changed(path change.Path, patch map[string]any) []change.Path {
	var out []change.Path

	for _, key := range slices.Sorted(maps.Keys(patch)) {
		field := append(slices.Clone(path), fieldpath.Field(key))

		if below, ok := patch[key].(map[string]any); ok && len(below) > 0 {
			out = append(out, changed(field, below)...)
		} else {
			out = append(out, field)
		}
	}

	return out
}
