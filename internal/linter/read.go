// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package linter

import (
	"context"
	"encoding/json"
	"fmt"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/customresource"
	"github.com/kausality-io/kausality-crossplane/internal/definition"
	"github.com/kausality-io/kausality-crossplane/package/crds"
)

// own are the Validators of our kinds, made when they are asked for first.
type own struct {
	defined map[schema.GroupVersionKind]*extv1.CustomResourceDefinition
	made    map[schema.GroupVersionKind]*customresource.Validator
}

// of is the Validator of a kind; nil where it is none of ours.
func (o *own) of(gvk schema.GroupVersionKind) (*customresource.Validator, error) {
	if o.defined == nil {
		o.defined = map[schema.GroupVersionKind]*extv1.CustomResourceDefinition{}
		o.made = map[schema.GroupVersionKind]*customresource.Validator{}

		all, err := crds.All()
		if err != nil {
			return nil, err
		}

		for _, crd := range all {
			for _, v := range crd.Spec.Versions {
				o.defined[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = crd
			}
		}
	}

	if v, ok := o.made[gvk]; ok || o.defined[gvk] == nil {
		return v, nil
	}

	v, err := customresource.NewValidator(o.defined[gvk], gvk.Version)
	o.made[gvk] = v

	return v, err
}

// read reads one object.
func (r *run) read(ctx context.Context, i int) error {
	ref := objectOf(r.objects[i])
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)

	switch {
	case gvk.Group == v1alpha1.Group:
		r.out.Objects = append(r.out.Objects, ref)

		return r.readOwn(ctx, i, gvk)
	case gvk.Group == extv1.GroupName && gvk.Kind == "CustomResourceDefinition",
		gvk.Group == definition.GroupCrossplane && (gvk.Kind == "CompositeResourceDefinition" || gvk.Kind == "Composition"):
		r.out.Definitions = append(r.out.Definitions, ref)
		r.readDefinition(i, gvk)
	default:
		r.out.Others = append(r.out.Others, ref)
	}

	return nil
}

// readDefinition reads what defines kinds. What cannot be read is a finding.
func (r *run) readDefinition(i int, gvk schema.GroupVersionKind) {
	raw, err := json.Marshal(r.objects[i].Content)

	switch {
	case err != nil:
	case gvk.Kind == "CompositeResourceDefinition":
		err = r.kinds.AddXRD(raw)
	case gvk.Kind == "Composition":
		err = r.kinds.AddComposition(raw)
		r.readsElsewhere(i, r.objects[i].Content, "")
	default:
		crd := &extv1.CustomResourceDefinition{}
		if err = json.Unmarshal(raw, crd); err == nil {
			err = r.kinds.AddCRD(crd)
		}
	}

	if err != nil {
		r.found = append(r.found, typecheck.Finding{
			Item: i, Rule: typecheck.UnreadableSchema, Severity: typecheck.Warning,
			Message: fmt.Sprintf("nothing is checked against it: %s", err),
		})
	}
}

// readOwn validates an object of ours, and takes it for being checked with the others.
func (r *run) readOwn(ctx context.Context, i int, gvk schema.GroupVersionKind) error {
	v, err := r.own.of(gvk)
	if err != nil {
		return err
	}

	if v == nil {
		r.found = append(r.found, typecheck.Finding{
			Item: i, Rule: typecheck.UnknownKind, Severity: typecheck.Error, Field: "kind",
			Message: fmt.Sprintf("Kausality has no kind %s of %s", gvk.Kind, gvk.GroupVersion()), Remedy: r.kindRemedy(gvk),
		})

		return nil
	}

	// What is there twice is not seen by anything that follows.
	for _, d := range r.objects[i].Duplicates() {
		r.found = append(r.found, typecheck.Finding{
			Item: i, Rule: typecheck.DuplicateKey, Severity: typecheck.Warning, Field: d.Path,
			Message: "the key is in its mapping twice: the last one counts", Remedy: "delete one of them",
		})
	}

	in := v.Validate(ctx, r.objects[i].Content)
	r.found = append(r.found, invalid(i, v, in)...)

	r.in.Refused[i] = len(in.Unknown)+len(in.Errs) > 0

	r.take(i, gvk, in.Object)

	return nil
}

// kindRemedy says which kind may be meant.
func (r *run) kindRemedy(gvk schema.GroupVersionKind) string {
	var kinds []string

	for have := range r.own.defined {
		if have.Kind == gvk.Kind {
			return "write apiVersion: " + have.GroupVersion().String()
		}

		kinds = append(kinds, have.Kind)
	}

	if like := typecheck.Alike(gvk.Kind, kinds); len(like) == 1 {
		return "write kind: " + like[0]
	}

	return ""
}

// invalid are the findings of a validation.
func invalid(i int, v *customresource.Validator, in customresource.Result) []typecheck.Finding {
	var out []typecheck.Finding

	for _, path := range in.Unknown {
		f := typecheck.Finding{
			Item: i, Rule: typecheck.UnknownField, Severity: typecheck.Error, Field: path,
			Message: fmt.Sprintf("unknown field %q", path),
		}
		if like := typecheck.Alike(last(path), v.Siblings(path)); len(like) > 0 {
			f.Remedy = "write " + like[0] + ", if that is meant"
		}

		out = append(out, f)
	}

	schemas := len(in.Errs) - in.Rules
	out = append(out, typecheck.InvalidFields(i, func(*field.Error) string { return typecheck.Schema }, in.Errs[:schemas])...)

	return append(out, typecheck.InvalidFields(i, func(*field.Error) string { return typecheck.SchemaRule }, in.Errs[schemas:])...)
}

// take takes an object for being checked with the others. One that its type cannot hold the
// schema has refused.
func (r *run) take(i int, gvk schema.GroupVersionKind, object map[string]any) {
	switch gvk.Kind {
	case v1alpha1.KindPolicy:
		r.in.Policies = takeAs(r.in.Policies, i, object)
	case v1alpha1.KindBinding:
		r.in.Bindings = takeAs(r.in.Bindings, i, object)
	case v1alpha1.KindUpgrade:
		r.in.Windows = takeAs(r.in.Windows, i, object)
	case v1alpha1.KindEnforcement:
		r.in.Enforcements = takeAs(r.in.Enforcements, i, object)
	}
}

func takeAs[T any](list []typecheck.Item[*T], i int, object map[string]any) []typecheck.Item[*T] {
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, out) != nil {
		return list
	}

	return append(list, typecheck.Item[*T]{At: i, Object: out})
}

// last is the last name of a path.
func last(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}

	return path
}
