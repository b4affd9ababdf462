// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// askedFields are the changes that can is asked about.
type askedFields struct {
	create, delete bool
	// values are those that fields get, by path, in order.
	values []fieldValue
	// fields are those of which no value is given.
	fields []string
}

type fieldValue struct {
	path  string
	value any
}

// parseFields reads FIELD[=VALUE], create and delete.
func parseFields(args []string) (askedFields, error) {
	var out askedFields

	for _, arg := range args {
		path, text, given := strings.Cut(arg, "=")

		switch {
		case arg == v1alpha1.MutationCreate:
			out.create = true
		case arg == v1alpha1.MutationDelete:
			out.delete = true
		case !given:
			out.fields = append(out.fields, path)
		default:
			var value any
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				return askedFields{}, usageError{fmt.Errorf("cannot read the value of %q: %w", path, err)}
			}

			out.values = append(out.values, fieldValue{path: path, value: whole(value)})
		}
	}

	if out.delete && (out.create || len(out.values)+len(out.fields) > 0) {
		return askedFields{}, usageError{errDeleteAlone}
	}

	return out, nil
}

// errDeleteAlone is the cause where a deletion is asked about together with other changes.
var errDeleteAlone = errors.New("what is deleted is not changed: ask about delete alone")

// whole has whole numbers be such, as the API server decodes them.
func whole(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return value
	}

	var out any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return value
	}

	return out
}

// set sets the values in an object; null takes a field away.
func (a askedFields) set(u *unstructured.Unstructured) error {
	paved := fieldpath.Pave(u.Object)

	for _, v := range a.values {
		err := paved.SetValue(v.path, v.value)
		if v.value == nil {
			if err = paved.DeleteField(v.path); fieldpath.IsNotFound(err) {
				err = nil
			}
		}

		if err != nil {
			return usageError{fmt.Errorf("cannot set %q of %s: %w", v.path, object(u), err)}
		}
	}

	return nil
}

// canApply answers whether manifests may be applied.
func (i *inquirer) canApply(ctx context.Context, in io.Reader, out io.Writer, files []string, as outputOptions) error {
	manifests, err := readManifests(files, in)
	if err != nil {
		return err
	}

	docs := make([]verdictDocument, 0, len(manifests))

	for _, m := range manifests {
		u := &unstructured.Unstructured{Object: m.Content}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return fmt.Errorf("cannot read %s: %w", m.File(), errNoObject)
		}

		doc, err := i.canApplyOne(ctx, u)
		if err != nil {
			return err
		}

		docs = append(docs, doc)
	}

	if len(docs) == 0 {
		return usageError{errNothingAsked}
	}

	return printVerdicts(out, as, docs...)
}

// errNoObject is the cause where a manifest does not say what it is of.
var errNoObject = errors.New("each document has to have apiVersion, kind and metadata.name")

// canApplyOne answers about one manifest: of what is stored the fields change that it
// names, and all others stay.
func (i *inquirer) canApplyOne(ctx context.Context, m *unstructured.Unstructured) (verdictDocument, error) {
	gvk := m.GroupVersionKind()

	mapping, err := i.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return verdictDocument{}, fmt.Errorf("cannot find kind %q: %w", gvk.Kind, err)
	}

	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && m.GetNamespace() == "" {
		m.SetNamespace(i.namespace)
	}

	from, err := i.read(ctx, gvk, m.GetNamespace(), m.GetName())

	switch {
	case apierrors.IsNotFound(err), served.Unserved(err):
		return i.judge(ctx, askedFields{create: true}, nil, m)
	case err != nil:
		return verdictDocument{}, err
	}

	to, err := merged(from, m)
	if err != nil {
		return verdictDocument{}, fmt.Errorf("cannot merge the manifest into %s: %w", object(from), err)
	}

	return i.judge(ctx, askedFields{}, from, to)
}

// merged is an object with what a manifest names.
func merged(from, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	have, err := json.Marshal(from.Object)
	if err != nil {
		return nil, err
	}

	want, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, err
	}

	raw, err := jsonpatch.MergePatch(have, want)
	if err != nil {
		return nil, err
	}

	out := &unstructured.Unstructured{}

	return out, utiljson.Unmarshal(raw, &out.Object)
}
