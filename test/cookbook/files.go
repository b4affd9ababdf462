// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// What scenarios name, in base beside them.
const (
	// fileRecipe is the YAML block of the recipe, at its lines of the page.
	fileRecipe = "recipe.yaml"
	// fileActive is the same once its windows are active, as their status says.
	fileActive = "recipe-active.yaml"
)

// plays are the files of the plays, with the recipes in them.
type plays struct {
	policytest.Files

	// recipes by the directory of their play.
	recipes map[string]Recipe
}

// Plays are the files of the plays below a directory of some files, with the recipes where scenarios name
// them. The parameters that a recipe has are in each scenario that has none of its own.
func Plays(files policytest.Files, dir string, recipes []Recipe) policytest.Files {
	out := plays{Files: files, recipes: map[string]Recipe{}}
	for _, r := range recipes {
		out.recipes[path.Join(dir, r.Anchor)] = r
	}

	return out
}

// ReadFile reads a file of a play, or what stands for the recipe.
func (p plays) ReadFile(name string) ([]byte, error) {
	dir, file := path.Dir(path.Clean(name)), path.Base(name)

	if r, ok := p.recipes[path.Dir(dir)]; ok && path.Base(dir) == "base" {
		switch file {
		case fileRecipe:
			return []byte(strings.Repeat("\n", r.Line) + r.Text), nil
		case fileActive:
			return r.active()
		}
	}

	raw, err := p.Files.ReadFile(name)
	if r, ok := p.recipes[dir]; ok && err == nil && path.Ext(file) == policytest.Ending {
		return r.withParameters(raw)
	}

	return raw, err
}

// withParameters adds the parameters of the recipe to a scenario that has none.
func (r Recipe) withParameters(raw []byte) ([]byte, error) {
	archive := txtar.Parse(raw)
	if slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return f.Name == "params.yaml" || f.Name == "gate.yaml" }) {
		return raw, nil
	}

	objects, err := r.Objects()
	if err != nil {
		return nil, err
	}

	text, err := write(slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return !IsParameter(u) }))
	if err != nil || len(text) == 0 {
		return raw, err
	}

	archive.Files = append(archive.Files, txtar.File{Name: "params.yaml", Data: text})

	return txtar.Format(archive), nil
}

// IsParameter reports whether an object of a recipe holds parameters: it is neither of ours, nor a role, nor
// a definition.
func IsParameter(u *unstructured.Unstructured) bool {
	return !slices.Contains([]string{v1alpha1.Group, rbacv1.GroupName, extv1.GroupName}, u.GroupVersionKind().Group)
}

// active is the recipe with its windows active.
func (r Recipe) active() ([]byte, error) {
	objects, err := r.Objects()
	if err != nil {
		return nil, err
	}

	for _, u := range objects {
		if u.GetKind() == v1alpha1.KindUpgrade {
			u.Object["status"] = map[string]any{"active": true, "observedGeneration": u.GetGeneration()}
		}
	}

	return write(objects)
}

// Objects of the recipe.
func (r Recipe) Objects() ([]*unstructured.Unstructured, error) {
	docs := strings.Split(r.Text, "\n---\n")
	out := make([]*unstructured.Unstructured, len(docs))

	for i, doc := range docs {
		out[i] = &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &out[i].Object); err != nil {
			return nil, fmt.Errorf("cannot read recipe %q: %w", r.Heading, err)
		}
	}

	return out, nil
}

// write writes objects as YAML; nothing where there is none.
func write(objects []*unstructured.Unstructured) ([]byte, error) {
	docs := make([][]byte, len(objects))

	for i, u := range objects {
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot write %s %q: %w", u.GetKind(), u.GetName(), err)
		}

		docs[i] = raw
	}

	return bytes.Join(docs, []byte("---\n")), nil
}

// named finds an object by kind and name.
func named(kind, name string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name }
}
