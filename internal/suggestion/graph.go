// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// graph is what feeds what in one Composition.
type graph struct {
	name string
	kind typeRef
	// resources that it composes, in order.
	resources []*composed
	flows     []flow
	// copied are fields of the XR that were seen to be copied from its Claim, with where.
	copied []cause
	// pipeline is true where it has one: then Crossplane takes of the XR only the status.
	pipeline bool
}

// reader reads Compositions, and notes what it cannot follow.
type reader struct {
	*Material

	silent []string
	graphs map[string]*graph
	// reading are the graphs that are being read, from the outside in.
	reading  []*graph
	problems []Problem
	notes    []string
}

func (r *reader) problemf(g *graph, at origin, format string, args ...any) {
	p := Problem{
		Composition: g.name, Step: at.step, Resource: at.resource, Patch: at.patch, Why: fmt.Sprintf(format, args...),
	}
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// read reads a Composition once.
func (r *reader) read(u *unstructured.Unstructured) (*graph, error) {
	if g, ok := r.graphs[u.GetName()]; ok {
		return g, nil
	}

	in, err := specOf(u)
	if err != nil {
		return nil, err
	}

	g := &graph{name: u.GetName(), kind: in.CompositeTypeRef, pipeline: len(in.Pipeline) > 0}
	r.graphs[g.name] = g

	if !g.pipeline {
		if len(in.Resources) == 0 {
			r.problemf(g, origin{}, "it has neither a pipeline nor resources")
		}

		r.step(g, "", in.templates)
	}

	for i := range in.Pipeline {
		s := &in.Pipeline[i]

		switch {
		case s.patches():
			var t templates
			if err := decode(s.Input, &t); err != nil {
				return nil, fmt.Errorf("cannot read step %q of Composition %q: %w", s.Step, g.name, err)
			}

			r.step(g, s.Step, t)
		case !r.composesNothing(s):
			r.problemf(g, origin{step: s.Step}, "what %s makes of the XR's fields is not known: "+
				"run it with mode Audit and see with --from-log or --held, or write policies for it", s.FunctionRef.Name)
		}
	}

	r.checkSides(g)

	r.reading = append(r.reading, g)
	defer func() { r.reading = r.reading[:len(r.reading)-1] }()

	return g, r.know(g)
}

// quiet are groups of inputs of functions that compose nothing: they read other objects,
// or say when resources are ready, or in which order they are made.
var quiet = []string{ //nolint:gochecknoglobals // A constant that Go has no way to write.
	"kausality.io", "environmentconfigs.fn.crossplane.io", "extra-resources.fn.crossplane.io", "sequencer.fn.crossplane.io",
}

// composesNothing reports whether a step is known to leave composed resources as they are.
func (r *reader) composesNothing(s *pipelineStep) bool {
	apiVersion, _ := s.Input["apiVersion"].(string)

	return slices.Contains(r.silent, s.FunctionRef.Name) || strings.HasSuffix(s.FunctionRef.Name, "function-auto-ready") ||
		slices.Contains(quiet, schema.FromAPIVersionAndKind(apiVersion, "").Group)
}

// step adds the resources of one step, and their patches.
func (r *reader) step(g *graph, name string, in templates) {
	for i, p := range in.Environment.Patches {
		at := origin{step: name, patch: fmt.Sprintf("environment.patches[%d]", i)}
		r.patch(g, nil, p, at, environmentEnds(p.Type))
	}

	for i, t := range in.Resources {
		at := origin{step: name, resource: t.Name}
		if t.Name == "" {
			at.resource = fmt.Sprintf("resources[%d]", i)
		}

		c := r.resource(g, at, t.Base)
		if c == nil {
			continue
		}

		for j, p := range t.Patches {
			at.patch = fmt.Sprintf("patches[%d]", j)

			if p.Type != "PatchSet" {
				r.patch(g, c, p, at, composedEnds(p.Type))

				continue
			}

			r.patchSet(g, c, p.PatchSetName, at, in.PatchSets)
		}
	}
}

// patchSet adds the patches of a set.
func (r *reader) patchSet(g *graph, c *composed, name string, at origin, sets []patchSet) {
	i := slices.IndexFunc(sets, func(s patchSet) bool { return s.Name == name })
	if i < 0 {
		r.problemf(g, at, "there is no PatchSet %q", name)

		return
	}

	outer := at.patch

	for j, p := range sets[i].Patches {
		at.patch = fmt.Sprintf("%s of PatchSet %s, patches[%d]", outer, name, j)
		r.patch(g, c, p, at, composedEnds(p.Type))
	}
}

// resource finds or adds a composed resource; nil where its kind is not known. A step
// that gives a base makes it anew, and one that gives none patches what was made before.
func (r *reader) resource(g *graph, at origin, base map[string]any) *composed {
	old := slices.IndexFunc(g.resources, func(c *composed) bool { return c.at.resource == at.resource })

	if base == nil {
		if old < 0 {
			r.problemf(g, at, "it has no base, and no step before makes it that can be followed: its kind is not known")

			return nil
		}

		return g.resources[old]
	}

	c := &composed{at: at, base: base}
	if err := decode(base, &c.kind); err != nil || c.kind.Kind == "" {
		r.problemf(g, at, "its base has no kind")

		return nil
	}

	if old >= 0 {
		g.flows = slices.DeleteFunc(g.flows, func(f flow) bool {
			return slices.Contains([]*composed{f.from.resource, f.to.resource}, g.resources[old])
		})
		g.resources = slices.Delete(g.resources, old, old+1)
	}

	g.resources = append(g.resources, c)

	return c
}

// ends say between which sides a type of patches is; false where there is no such type.
type ends struct {
	from, to side
	ok       bool
}

// composedEnds are those of patches of a resource.
func composedEnds(typ string) ends {
	switch typ {
	case "", "FromCompositeFieldPath", "CombineFromComposite":
		return ends{composite, composedSide, true}
	case "ToCompositeFieldPath", "CombineToComposite":
		return ends{composedSide, composite, true}
	case "FromEnvironmentFieldPath", "CombineFromEnvironment":
		return ends{environment, composedSide, true}
	case "ToEnvironmentFieldPath", "CombineToEnvironment":
		return ends{composedSide, environment, true}
	default:
		return ends{}
	}
}

// environmentEnds are those of patches between the XR and the environment.
func environmentEnds(typ string) ends {
	switch typ {
	case "", "FromCompositeFieldPath", "CombineFromComposite":
		return ends{composite, environment, true}
	case "ToCompositeFieldPath", "CombineToComposite":
		return ends{environment, composite, true}
	default:
		return ends{}
	}
}

// patch adds what a patch makes flow.
func (r *reader) patch(g *graph, c *composed, p patch, at origin, between ends) {
	if !between.ok {
		r.problemf(g, at, "patches of type %q are not known", p.Type)

		return
	}

	from, to := p.ends()
	if len(from) == 0 || to == "" {
		r.problemf(g, at, "it does not say from which field to which")

		return
	}

	target, err := change.ParsePattern(to)
	if err != nil {
		r.problemf(g, at, "toFieldPath %q: %v", to, err)

		return
	}

	narrows := slices.ContainsFunc(p.Transforms, func(t struct {
		Type string `json:"type"`
	},
	) bool {
		return t.Type == "map" || t.Type == "match"
	})

	for _, text := range from {
		source, err := change.ParsePattern(text)
		if err != nil || source.Wildcard() {
			r.problemf(g, at, "fromFieldPath %q names no single field", text)

			continue
		}

		g.flows = append(g.flows, flow{
			from: placeOn(between.from, c, source), to: placeOn(between.to, c, target), at: at, order: len(g.flows),
			required: p.Policy.FromFieldPath == required && between.to == composedSide, narrows: narrows,
		})
	}
}

// placeOn is a field on one side of a patch.
func placeOn(s side, c *composed, path change.Pattern) place {
	if s != composedSide {
		c = nil
	}

	return place{side: s, resource: c, path: path}
}
