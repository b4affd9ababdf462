// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package customresource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Validator validates objects of one version of a CRD. It is for one goroutine at a time.
type Validator struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// NewValidator makes the Validator of a version.
func NewValidator(crd *extv1.CustomResourceDefinition, version string) (*Validator, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v extv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 || crd.Spec.Versions[i].Schema == nil {
		return nil, fmt.Errorf("cannot validate by CRD %q: it has no schema of version %q", crd.GetName(), version)
	}

	in := &apiextensions.CustomResourceValidation{}
	if err := extv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		crd.Spec.Versions[i].Schema.DeepCopy(), in, nil); err != nil {
		return nil, fmt.Errorf("cannot convert the schema of CRD %q: %w", crd.GetName(), err)
	}

	structural, err := schema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema of CRD %q: %w", crd.GetName(), err)
	}

	by, _, err := validation.NewSchemaValidator(in.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema of CRD %q: %w", crd.GetName(), err)
	}

	return &Validator{
		structural: structural, schema: by, rules: cel.NewValidator(structural, true, apiservercel.PerCallLimit),
		namespaced: crd.Spec.Scope == extv1.NamespaceScoped,
	}, nil
}

// Result is what the API server makes of an object.
type Result struct {
	// Object with defaults, without what its schema does not know, and without status.
	Object map[string]any
	// Unknown are the paths of the fields that its schema does not know. Under strict
	// validation, as kubectl asks for, they are refused.
	Unknown []string
	// Errs are other reasons to refuse it: of the schema, and of its rules where what they read
	// is right.
	Errs field.ErrorList
	// Rules is how many of the last of them are of the schema's rules.
	Rules int
}

// Validate validates an object that is to be created, which it does not modify. One without
// a namespace is taken to be created in one, where its kind has namespaces.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource, and
// pkg/apiserver/customresource_handler.go.
func (v *Validator) Validate(ctx context.Context, in map[string]any) Result {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(in)}
	delete(u.Object, "status") // Nobody creates one.

	// 1. Metadata, and what of it is unknown.
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return Result{Object: u.Object, Errs: field.ErrorList{field.Invalid(field.NewPath("metadata"), "", err.Error())}}
	}

	if !found {
		meta = &metav1.ObjectMeta{}
	}

	if v.namespaced && meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}

	if !v.namespaced {
		meta.Namespace = "" // The API server takes it away.
	}

	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = generated(meta.GenerateName)
	}

	// 2. What the schema does not know, and defaults.
	pruned := pruning.PruneWithOptions(u.Object, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, v.structural)
	defaulting.Default(u.Object, v.structural)

	out := Result{Object: u.Object, Unknown: append(unknown, pruned...)}

	// 3. The schema, and its rules where nothing keeps them from being evaluated.
	out.Errs = append(out.Errs,
		apivalidation.ValidateObjectMeta(meta, v.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	out.Errs = append(out.Errs, validation.ValidateCustomResource(nil, u.Object, v.schema)...)
	out.Errs = append(out.Errs, objectmeta.Validate(ctx, nil, u.Object, v.structural, false)...)
	out.Errs = append(out.Errs, listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)

	if v.rules == nil || slices.ContainsFunc(out.Errs, blocks) {
		return out
	}

	// They are evaluated in the order of a map.
	errs, _ := v.rules.Validate(ctx, nil, v.structural, u.Object, nil, apiservercel.RuntimeCELCostBudget)
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	out.Errs, out.Rules = append(out.Errs, errs...), len(errs)

	return out
}

// generated is a name as the API server makes one of metadata.generateName: as much of that as
// leaves room for five letters.
//
// Source: k8s.io/apiserver pkg/storage/names.
func generated(base string) string {
	const (
		letters = "xxxxx"
		most    = 63 - len(letters)
	)

	return base[:min(len(base), most)] + letters
}

// blocks reports whether an error keeps the rules of the schema from being evaluated.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// Siblings are the fields that the schema knows beside one, given by its path.
func (v *Validator) Siblings(path string) []string {
	segments, err := fieldpath.Parse(path)
	if err != nil || len(segments) == 0 {
		return nil
	}

	at := v.structural

	for _, s := range segments[:len(segments)-1] {
		switch {
		case s.Type == fieldpath.SegmentIndex && at.Items != nil:
			at = at.Items
		case s.Type == fieldpath.SegmentField:
			next, ok := at.Properties[s.Field]
			if !ok {
				return nil
			}

			at = &next
		default:
			return nil
		}
	}

	return slices.Sorted(maps.Keys(at.Properties))
}
