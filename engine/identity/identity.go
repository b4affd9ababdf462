// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// AnnotationExternalName says what the external object of a managed resource is called there.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/meta/meta.go.
const AnnotationExternalName = "crossplane.io/external-name"

// FieldName is the field of a managed resource that has the name.
const FieldName = "metadata.annotations[" + AnnotationExternalName + "]"

const (
	// defaultConfig is the name of the ProviderConfig of a managed resource that names none.
	//
	// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, apis/common, ResourceSpec.
	defaultConfig = "default"

	// maxValue is the most bytes of a recorded value: of a longer one its hash is.
	maxValue = 253
)

// everywhere are the fields that decide of any kind: the provider config, and the external name.
//
//nolint:gochecknoglobals // A constant.
var everywhere = fieldsOf("spec.providerConfigRef", FieldName)

// Of is the identity of a managed resource's external object, as far as the managed resource says it.
func Of(u *unstructured.Unstructured, more Fields) v1alpha1.ExternalIdentity {
	k := more.kindOf(u.GroupVersionKind().GroupKind())
	out := v1alpha1.ExternalIdentity{Config: configOf(u)}

	if k.named {
		out.Name = resource.Annotation(u, AnnotationExternalName)
	}

	for _, f := range k.fields {
		value, ok := valueAt(u, f.path)
		if !ok && !k.whole {
			continue // A provider may resolve a reference, or initialise it, later.
		}

		if out.Fields == nil {
			out.Fields = map[string]string{}
		}

		out.Fields[f.text] = value
	}

	return out
}

// configOf is the ProviderConfig that a managed resource names, as KIND/NAME, or NAME where it says no kind.
func configOf(u *unstructured.Unstructured) string {
	ref := resource.Map(u.Object, "spec", "providerConfigRef")
	name := cmp.Or(resource.String(ref, "name"), defaultConfig)

	if kind := resource.String(ref, "kind"); kind != "" {
		return kind + "/" + name
	}

	return name
}

// valueAt is the value of a field as text; false where there is none.
func valueAt(u *unstructured.Unstructured, path fieldpath.Path) (string, bool) {
	value, ok := path.In(u.Object)
	if !ok || value == nil {
		return "", false
	}

	text, isText := value.(string)
	if !isText {
		raw, err := json.Marshal(value)
		if err != nil {
			return "", false
		}

		text = string(raw)
	}

	if len(text) > maxValue {
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), true
	}

	return text, true
}

// Differs are the fields in which a managed resource stands for another external object than it did, in order; none where it
// stands for the same. What was not known before says nothing.
func Differs(was, is v1alpha1.ExternalIdentity) []string {
	var out []string

	if was.Config != is.Config {
		out = append(out, everywhere[0].text)
	}

	if was.Name != "" && was.Name != is.Name {
		out = append(out, everywhere[1].text)
	}

	for text, value := range was.Fields {
		now := is.Fields[text]
		if text == fieldAPIVersion { // Another version of a group serves the same objects.
			value, now = groupOf(value), groupOf(now)
		}

		if value != now {
			out = append(out, text)
		}
	}

	slices.Sort(out)

	return out
}

func groupOf(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }

// Changes reports whether a change between two versions of a managed resource, by its path, is one of its identity.
func Changes(from, to *unstructured.Unstructured, path fieldpath.Path, more Fields) bool {
	if !more.decides(from.GroupVersionKind().GroupKind(), path) {
		return false
	}

	return slices.ContainsFunc(Differs(Of(from, more), Of(to, more)), func(text string) bool {
		p, err := fieldpath.Parse(text)

		return err == nil && related(field{text, p}, path)
	})
}

// decides reports whether a path is of a field that decides which external object a kind of managed resource stands for, or
// leads to or through one.
func (more Fields) decides(gk schema.GroupKind, path fieldpath.Path) bool {
	is := func(f field) bool { return related(f, path) }
	k := more.kindOf(gk)

	return is(everywhere[0]) || k.named && is(everywhere[1]) || slices.ContainsFunc(k.fields, is)
}

// related reports whether one of a field and a path is the other, or leads to it.
func related(f field, path fieldpath.Path) bool {
	n := min(len(f.path), len(path))

	return slices.Equal(f.path[:n], path[:n])
}

// Describe names an external object for a person: what it is and where, as far as its identity says.
func Describe(u *unstructured.Unstructured, id v1alpha1.ExternalIdentity) string {
	if Fields(nil).kindOf(u.GroupVersionKind().GroupKind()).whole {
		name := strings.TrimPrefix(id.Fields[fieldNamespace]+"/"+id.Fields[fieldName], "/")

		return fmt.Sprintf("%s %s (provider config %s)", id.Fields[fieldKind], name, id.Config)
	}

	what := []string{fmt.Sprintf("external object %q", cmp.Or(id.Name, resource.Name(u)))}
	for _, field := range slices.Sorted(maps.Keys(id.Fields)) {
		what = append(what, fmt.Sprintf("%s %q", strings.TrimPrefix(field, "spec.forProvider."), id.Fields[field]))
	}

	return fmt.Sprintf("%s (provider config %s)", strings.Join(what, ", "), id.Config)
}

// Set gives a managed resource an identity: that which it had, for a record of what it leaves behind, or its own, where the rest of
// its spec was taken away. The object is modified.
func Set(u *unstructured.Unstructured, id v1alpha1.ExternalIdentity) {
	if id.Name != "" {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[AnnotationExternalName] = id.Name
		u.SetAnnotations(annotations)
	}

	ref := map[string]any{"name": id.Config}
	if kind, name, ok := strings.Cut(id.Config, "/"); ok {
		ref = map[string]any{"kind": kind, "name": name}
	}

	_ = unstructured.SetNestedField(u.Object, ref, "spec", "providerConfigRef") // A managed resource has a spec.

	for field, text := range id.Fields {
		if path, err := fieldpath.Parse(field); err == nil {
			set(u, path, text)
		}
	}
}

// set sets a field of an object to a recorded value; one that is empty was not there.
func set(u *unstructured.Unstructured, path fieldpath.Path, text string) {
	keys := make([]string, len(path))
	for i, s := range path {
		keys[i] = s.Key()
	}

	var value any = text
	if is, ok := path.In(u.Object); ok && is != nil {
		if _, isText := is.(string); !isText && json.Unmarshal([]byte(text), &value) != nil {
			return
		}
	}

	if text == "" {
		unstructured.RemoveNestedField(u.Object, keys...)

		return
	}

	_ = unstructured.SetNestedField(u.Object, value, keys...) // What it is in was there when it was recorded.
}
