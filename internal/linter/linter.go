// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package linter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/definition"
	"github.com/kausality-io/kausality-crossplane/internal/manifest"
)

// Options say how to lint.
type Options struct {
	// Settings of the installation: who Crossplane is.
	Settings request.Settings
	// Now is the time to judge windows and exceptions by.
	Now time.Time
}

// Report is what was found.
type Report struct {
	// Findings, in the order of the files, and of lines there.
	Findings []Finding
	// Objects are those of Kausality that were checked, Definitions the CRDs, XRDs and
	// Compositions that were read, and Others all else, which was ignored.
	Objects, Definitions, Others []Object
}

// Object is one of a file.
type Object struct {
	File                              string
	APIVersion, Kind, Namespace, Name string
}

// Finding is one about an object.
type Finding struct {
	typecheck.Finding

	Object   Object
	Position manifest.Position
}

// Lint lints objects, in the order in which their files are given. The error is of CRDs of
// our own that cannot be read, and of nothing else.
func Lint(ctx context.Context, objects []*manifest.Object, opts Options) (Report, error) {
	r := &run{objects: objects, kinds: definition.NewKinds(), in: check.Input{
		Refused: map[int]bool{}, Settings: opts.Settings, Now: opts.Now,
	}}

	// 1. Read what defines kinds, and ours.
	for i := range objects {
		if err := r.read(ctx, i); err != nil {
			return Report{}, err
		}
	}

	// 2. Check them.
	r.in.Kinds, r.in.Schemas, r.in.Composed = r.kinds.Served(), r.kinds.Schema, r.kinds.Composed()
	r.add(check.Lint(r.in)...)

	// 3. Say where what was found is.
	r.out.Findings = r.located()

	return r.out, nil
}

// run lints some objects.
type run struct {
	objects []*manifest.Object
	kinds   *definition.Kinds
	own     own
	in      check.Input
	found   []typecheck.Finding
	out     Report
}

// add adds findings of the engine. What the schema refuses the webhook refuses too, in other
// words, of the same field or of one right in it: that is told once.
func (r *run) add(list ...typecheck.Finding) {
	told := r.found

	for _, f := range list {
		if f.Severity != typecheck.Error || !slices.ContainsFunc(told, func(g typecheck.Finding) bool {
			return g.Item == f.Item && g.Severity == typecheck.Error && rightIn(f.Field, g.Field)
		}) {
			r.found = append(r.found, f)
		}
	}
}

// rightIn reports whether a field is another one, or right in it.
func rightIn(name, other string) bool {
	rest, ok := strings.CutPrefix(name, other)
	if !ok || other == "" {
		return false
	}

	return rest == "" || strings.ContainsRune(".[", rune(rest[0])) && !strings.ContainsAny(rest[1:], ".[")
}

// located are the findings with their places, ordered.
func (r *run) located() []Finding {
	place := map[string]int{}
	for i, o := range r.objects {
		if _, ok := place[o.File()]; !ok {
			place[o.File()] = i
		}
	}

	out := make([]Finding, 0, len(r.found))
	for _, f := range r.found {
		o := r.objects[f.Item]

		for _, i := range f.Others {
			at := r.objects[i].At("metadata.name")
			f.Message += fmt.Sprintf(" (see %s:%d:%d)", r.objects[i].File(), at.Line, at.Column)
		}

		out = append(out, Finding{Finding: f, Object: objectOf(o), Position: o.At(f.Field)})
	}

	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(place[a.Object.File], place[b.Object.File]),
			cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column),
			cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})

	return out
}

// objectOf names an object of a file.
func objectOf(o *manifest.Object) Object {
	u := unstructured.Unstructured{Object: o.Content}

	return Object{File: o.File(), APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
