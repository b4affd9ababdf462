// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// errComposition is the cause when it is not clear which Composition is meant.
var errComposition = errors.New("name one Composition")

// materialReader reads what suggestions are made from.
type materialReader struct {
	suggestOptions

	in io.Reader
	// problems say what could not be read.
	problems []string
}

// material reads from files where some are given, or else from the cluster.
func (r *materialReader) material(ctx context.Context, name string) (suggestion.Material, error) {
	if len(r.files) > 0 {
		objects, err := readFiles(r.files, r.in)
		if err != nil {
			return suggestion.Material{}, err
		}

		return r.sort(objects, name)
	}

	if name == "" {
		return suggestion.Material{}, usageError{fmt.Errorf("%w, or give its file with -f", errComposition)}
	}

	c, err := newCluster(r.clusterOptions)
	if err != nil {
		return suggestion.Material{}, err
	}

	return r.fromCluster(ctx, c, name)
}

// readFiles reads the objects of files and directories.
func readFiles(names []string, in io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for _, name := range names {
		paths := []string{name}

		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if paths, err = manifestsIn(name); err != nil {
				return nil, err
			}
		}

		for _, path := range paths {
			raw, err := readFile(path, in)
			if err != nil {
				return nil, err
			}

			objects, err := parseManifest(raw)
			if err != nil {
				return nil, fmt.Errorf("cannot read file %q: %w", path, err)
			}

			out = append(out, objects...)
		}
	}

	return out, nil
}

// manifestsIn are the manifests of a directory, in order.
func manifestsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read directory: %w", err)
	}

	var out []string

	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}

	return out, nil
}

func readFile(path string, in io.Reader) ([]byte, error) {
	var (
		raw []byte
		err error
	)

	if path == "-" {
		raw, err = io.ReadAll(in)
	} else {
		raw, err = os.ReadFile(path) //nolint:gosec // The user names it.
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read file: %w", err)
	}

	return raw, nil
}

// parseManifest reads the objects of a manifest; those of Lists, too.
func parseManifest(raw []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		var doc any

		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}

		if err != nil {
			return nil, err
		}

		// As the API server decodes it: whole numbers are int64.
		text, err := utiljson.Marshal(doc)
		if err != nil {
			return nil, err
		}

		object := map[string]any{}
		if err := utiljson.Unmarshal(text, &object); err != nil || len(object) == 0 {
			continue // It is no object.
		}

		u := &unstructured.Unstructured{Object: object}
		if !u.IsList() {
			out = append(out, u)

			continue
		}

		for _, item := range resource.List(object, "items") {
			if m, ok := item.(map[string]any); ok {
				out = append(out, &unstructured.Unstructured{Object: m})
			}
		}
	}
}

// Kinds of what is read.
const (
	groupExtensions = "apiextensions.crossplane.io"
	kindComposition = "Composition"
	kindDefinition  = "CompositeResourceDefinition"
)

// xrDefinitions are what defines XRs.
//
//nolint:gochecknoglobals // A constant that Go has no way to write.
var xrDefinitions = doctor.Source{Group: groupExtensions, Version: "v1", Resource: "compositeresourcedefinitions"}

// sort finds what suggestions are made from among objects, and which Composition they are
// for.
func (r *materialReader) sort(objects []*unstructured.Unstructured, name string) (suggestion.Material, error) {
	var (
		out  suggestion.Material
		rest []*unstructured.Unstructured
	)

	for _, u := range objects {
		switch gk := u.GroupVersionKind().GroupKind(); gk {
		case schema.GroupKind{Group: groupExtensions, Kind: kindComposition}:
			if slices.ContainsFunc(out.Compositions, func(o *unstructured.Unstructured) bool { return o.GetName() == u.GetName() }) {
				return out, usageError{fmt.Errorf("%w: the files have Composition %q twice", errComposition, u.GetName())}
			}

			out.Compositions = append(out.Compositions, u)
		case schema.GroupKind{Group: groupExtensions, Kind: kindDefinition}:
			out.Definitions = append(out.Definitions, u)
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			out.Kinds = append(out.Kinds, u)
		default:
			rest = append(rest, u)
		}
	}

	var err error
	if out.Composition, err = chosen(out.Compositions, name); err != nil {
		return out, err
	}

	if r.held {
		out.Observed = suggestion.HeldOf(xrsOf(out.Composition, rest))
	}

	return out, nil
}

// chosen is the Composition of a name; without one the only one, or the only one that none
// of the others composes the XR of.
func chosen(list []*unstructured.Unstructured, name string) (*unstructured.Unstructured, error) {
	var names []string

	for _, u := range list {
		if u.GetName() == name || name == "" && len(list) == 1 {
			return u, nil
		}

		names = append(names, u.GetName())
	}

	if roots := suggestion.Roots(list); name == "" && len(roots) == 1 {
		return roots[0], nil
	}

	if len(names) == 0 {
		return nil, usageError{fmt.Errorf("%w: the files have none", errComposition)}
	}

	return nil, usageError{fmt.Errorf("%w: the files have %s", errComposition, strings.Join(names, ", "))}
}

// xrsOf are those of some objects that a Composition composes for.
func xrsOf(composition *unstructured.Unstructured, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	gk := schema.FromAPIVersionAndKind(
		resource.String(composition.Object, "spec", "compositeTypeRef", "apiVersion"),
		resource.String(composition.Object, "spec", "compositeTypeRef", "kind"),
	).GroupKind()

	var out []*unstructured.Unstructured

	for _, u := range objects {
		ref := resource.String(u.Object, "spec", "crossplane", "compositionRef", "name")
		if ref == "" {
			ref = resource.String(u.Object, "spec", "compositionRef", "name")
		}

		if u.GroupVersionKind().GroupKind() == gk && ref == composition.GetName() {
			out = append(out, u)
		}
	}

	return out
}

// clusterReader reads what suggestions are made from of a cluster.
type clusterReader interface {
	getter
	list(ctx context.Context, src doctor.Source, namespace string) doctor.List
	resourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error)
}

// fromCluster reads as the user: what may not be read is a problem, and the Composition itself
// has to be.
func (r *materialReader) fromCluster(ctx context.Context, from clusterReader, name string) (suggestion.Material, error) {
	var (
		out suggestion.Material
		err error
	)

	if out.Composition, err = from.Get(ctx, compositions, name); err != nil {
		return out, err
	}

	out.Compositions = r.all(ctx, from, doctor.Compositions, kindComposition)
	out.Definitions = r.all(ctx, from, xrDefinitions, kindDefinition)

	for _, gvk := range suggestion.KindsOf(append(slices.Clone(out.Compositions), out.Composition)) {
		if crd := r.definitionOf(ctx, from, gvk); crd != nil {
			out.Kinds = append(out.Kinds, crd)
		}
	}

	if r.held {
		gvk := schema.FromAPIVersionAndKind(
			resource.String(out.Composition.Object, "spec", "compositeTypeRef", "apiVersion"),
			resource.String(out.Composition.Object, "spec", "compositeTypeRef", "kind"),
		)

		gvr, err := from.resourceOf(gvk)
		if err != nil {
			return out, fmt.Errorf("cannot find kind %s: %w", gvk.Kind, err)
		}

		src := doctor.Source{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}
		out.Observed = suggestion.HeldOf(xrsOf(out.Composition, r.all(ctx, from, src, gvk.Kind)))
	}

	return out, nil
}

// all reads all objects of a resource.
func (r *materialReader) all(ctx context.Context, from clusterReader, src doctor.Source, kind string) []*unstructured.Unstructured {
	read := from.list(ctx, src, "")
	if read.Problem != "" {
		r.problems = append(r.problems, fmt.Sprintf("cannot list objects of kind %s: %s", kind, read.Problem))
	}

	return read.Items
}

// definitionOf reads the CustomResourceDefinition of a kind; nil for a built-in one, and
// where it cannot be read.
func (r *materialReader) definitionOf(ctx context.Context, from clusterReader, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	if resource.BuiltIn(gvk.Group) {
		return nil
	}

	gvr, err := from.resourceOf(gvk)
	if meta.IsNoMatchError(err) {
		return nil // That it is not known is noted where it matters.
	}

	if err == nil {
		var u *unstructured.Unstructured
		if u, err = from.Get(ctx, "customresourcedefinitions.apiextensions.k8s.io", gvr.GroupResource().String()); err == nil {
			return u
		}
	}

	if !apierrors.IsNotFound(err) {
		r.problems = append(r.problems, err.Error())
	}

	return nil
}

// resourceOf is the resource of a kind.
func (c *cluster) resourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}

	return m.Resource, nil
}
