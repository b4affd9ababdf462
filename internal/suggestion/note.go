// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// maxNoted is how many fields one note names.
const maxNoted = 8

// note says of the Compositions what no policy is about, and why.
func (w *writer) note(levels []level) {
	w.unfed(levels[0])

	for _, l := range levels {
		w.unedited(l)
		w.reported(l)

		for _, c := range l.resources {
			w.constants(l, c)
		}
	}
}

// unfed notes the fields of the XR that feed nothing.
func (w *writer) unfed(l level) {
	s := property(w.schemaOf(l.kind.gvk()), fieldpath.Field(fieldSpec))
	if s == nil {
		return
	}

	fields := unread(s, change.Path{fieldpath.Field(fieldSpec)}, l.origins)
	if len(fields) > 0 {
		root, _ := w.root(l.graph)
		w.general = append(w.general, fmt.Sprintf("%s of %s %s: no patch that was followed reads it, and no policy is about it. "+
			"As policies say who may change other fields, who changes it is warned, or refused by an Enforcement.",
			some(fields), article(root.Kind), root.Kind))
	}
}

// unread are the fields below a path that no patch reads.
func unread(s *spec.Schema, at change.Path, origins []source) []string {
	var out []string

	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		path := append(slices.Clone(at), fieldpath.Field(name))

		switch {
		case !editable(path) || slices.ContainsFunc(origins, func(s source) bool { return s.path.Covers(path) }):
		case slices.ContainsFunc(origins, func(s source) bool { return s.path.Within(path) }):
			out = append(out, unread(&child, path, origins)...)
		default:
			out = append(out, path.String())
		}
	}

	return out
}

// unedited notes what patches read that nobody edits.
func (w *writer) unedited(l level) {
	var fields []string

	for _, f := range l.flows {
		path := f.from.path.Segments()
		if f.from.side != composite || editable(path) || below(path, fieldStatus) {
			continue
		}

		switch text := f.from.path.String(); {
		case below(path, fieldMetadata, "generation"), below(path, fieldMetadata, "resourceVersion"), below(path, fieldMetadata, "managedFields"):
			w.problemf(l.graph, f.at, "it reads %s, which changes with everything: no policy can be about that", text)
		default:
			fields = appendNew(fields, text)
		}
	}

	if len(fields) > 0 {
		w.general = append(w.general, fmt.Sprintf("%s of %s %s: nobody edits it: no policy is about it.",
			list(fields), article(l.kind.Kind), l.kind.Kind))
	}
}

// reported notes what follows from what is reported, and from nobody's change.
func (w *writer) reported(l level) {
	for _, f := range l.flows {
		indirect := f.from.side == environment || f.from.side == composite && below(f.from.path.Segments(), fieldStatus)
		if f.to.side != composedSide || !indirect || l.followed[f.order] || !l.fed(f) || ungated(f.to.path.Segments()) {
			continue
		}

		w.general = append(w.general, fmt.Sprintf("%s: %s -> %s follows from no field that somebody edits. It is made with the XR; "+
			"where it changes later it is held, unless an UpgradeAllowance lets it through.", f.at, f.from.path, f.to.path))
	}
}

// constants notes what a resource has of its base.
func (w *writer) constants(l level, c *composed) {
	var fields []string

	leaves(nil, c.base, func(path change.Path) {
		if len(path) == 0 || below(path, "apiVersion") || below(path, "kind") || ungated(path) {
			return
		}

		if !slices.ContainsFunc(l.flows, func(f flow) bool { return f.to.resource == c && f.to.path.Covers(path) }) {
			fields = append(fields, path.String())
		}
	})

	if len(fields) > 0 {
		w.general = append(w.general, fmt.Sprintf("%s: the base sets %s. A new version of the Composition alone changes that, "+
			"which an UpgradeAllowance lets through.", c.at, some(fields)))
	}
}

// some are the first of some fields, and how many more.
func some(fields []string) string {
	if more := len(fields) - maxNoted; more > 0 {
		return strings.Join(fields[:maxNoted], ", ") + fmt.Sprintf(" and %d more", more)
	}

	return list(fields)
}

// leaves are the paths of all values of a base, in order.
func leaves(at change.Path, v any, yield func(change.Path)) {
	m, ok := v.(map[string]any)
	if !ok {
		yield(at)

		return
	}

	for _, key := range slices.Sorted(maps.Keys(m)) {
		leaves(append(slices.Clone(at), fieldpath.Field(key)), m[key], yield)
	}
}
