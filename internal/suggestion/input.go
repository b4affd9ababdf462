// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The part of Compositions and of function-patch-and-transform's input that says which
// field feeds which. Those of Crossplane 1.20 without a pipeline read the same, and what
// newer versions add is left out: so these are not the types of one version.
//
// Source: github.com/crossplane-contrib/function-patch-and-transform v0.5.0 input/v1beta1,
// github.com/crossplane/crossplane v1.20 apis/apiextensions/v1.

// groupPatches is the API group of function-patch-and-transform's input, kindPatches its
// kind.
const (
	groupPatches = "pt.fn.crossplane.io"
	kindPatches  = "Resources"
)

// compositionSpec is the spec of a Composition.
type compositionSpec struct {
	templates

	CompositeTypeRef typeRef        `json:"compositeTypeRef"`
	Pipeline         []pipelineStep `json:"pipeline"`
}

type typeRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func (r typeRef) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// pipelineStep is a step of a pipeline.
type pipelineStep struct {
	Step        string `json:"step"`
	FunctionRef struct {
		Name string `json:"name"`
	} `json:"functionRef"`
	Input map[string]any `json:"input"`
}

// templates are resources with patches.
type templates struct {
	PatchSets   []patchSet `json:"patchSets"`
	Environment struct {
		Patches []patch `json:"patches"`
	} `json:"environment"`
	Resources []template `json:"resources"`
}

type patchSet struct {
	Name    string  `json:"name"`
	Patches []patch `json:"patches"`
}

// template is one composed resource.
type template struct {
	Name    string         `json:"name"`
	Base    map[string]any `json:"base"`
	Patches []patch        `json:"patches"`
}

// patch is one of any type.
type patch struct {
	Type          string `json:"type"`
	PatchSetName  string `json:"patchSetName"`
	FromFieldPath string `json:"fromFieldPath"`
	ToFieldPath   string `json:"toFieldPath"`
	Combine       struct {
		Variables []struct {
			FromFieldPath string `json:"fromFieldPath"`
		} `json:"variables"`
	} `json:"combine"`
	Transforms []struct {
		Type string `json:"type"`
	} `json:"transforms"`
	Policy struct {
		FromFieldPath string `json:"fromFieldPath"`
	} `json:"policy"`
}

// ends are the fields that a patch reads, and the one that it writes.
func (p patch) ends() (from []string, to string) {
	if p.FromFieldPath != "" {
		from = append(from, p.FromFieldPath)
	}

	for _, v := range p.Combine.Variables {
		from = append(from, v.FromFieldPath)
	}

	if to = p.ToFieldPath; to == "" && len(from) == 1 && p.FromFieldPath != "" {
		to = p.FromFieldPath
	}

	return from, to
}

// required is the policy of a patch without which a resource is not made.
const required = "Required"

// specOf reads a Composition.
func specOf(u *unstructured.Unstructured) (compositionSpec, error) {
	var out compositionSpec

	if err := decode(u.Object["spec"], &out); err != nil {
		return out, fmt.Errorf("cannot read Composition %q: %w", u.GetName(), err)
	}

	return out, nil
}

// decode reads a part of an object.
func decode(from, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}

	return json.Unmarshal(raw, into)
}

// patches reports whether a step runs function-patch-and-transform, whatever it is
// installed as.
func (s *pipelineStep) patches() bool {
	apiVersion, _ := s.Input["apiVersion"].(string)
	kind, _ := s.Input["kind"].(string)

	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind() == schema.GroupKind{Group: groupPatches, Kind: kindPatches}
}

// KindsOf are the kinds that Compositions compose by patches, in order, as far as they can be
// read.
func KindsOf(compositions []*unstructured.Unstructured) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind

	for _, u := range compositions {
		for _, ref := range composes(u) {
			if gvk := ref.gvk(); !slices.Contains(out, gvk) {
				out = append(out, gvk)
			}
		}
	}

	return out
}

// Roots are the Compositions for XRs that none of the others composes.
func Roots(compositions []*unstructured.Unstructured) []*unstructured.Unstructured {
	kinds := KindsOf(compositions)

	below := make([]schema.GroupKind, len(kinds))
	for i, gvk := range kinds {
		below[i] = gvk.GroupKind()
	}

	var out []*unstructured.Unstructured

	for _, u := range compositions {
		in, err := specOf(u)
		if err == nil && !slices.Contains(below, in.CompositeTypeRef.gvk().GroupKind()) {
			out = append(out, u)
		}
	}

	return out
}

// composes are the kinds of the bases of a Composition.
func composes(u *unstructured.Unstructured) []typeRef {
	in, err := specOf(u)
	if err != nil {
		return nil
	}

	all := in.Resources

	for i := range in.Pipeline {
		var t templates
		if s := &in.Pipeline[i]; s.patches() && decode(s.Input, &t) == nil {
			all = append(all, t.Resources...)
		}
	}

	var out []typeRef

	for _, t := range all {
		var ref typeRef
		if decode(t.Base, &ref) == nil && ref.Kind != "" {
			out = append(out, ref)
		}
	}

	return out
}
