// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

var errMeaning = errors.New("it does not mean the same")

// Object converts an object of the log. Stored is the object as it is stored: what it has used beyond that, its writer says of
// approvals alone. Windows are the UIDs of UpgradeAllowances, by name.
func Object(o map[string]any, parent *unstructured.Unstructured, stored map[string]any, windows map[string]types.UID) error {
	if o == nil {
		return nil
	}

	u := &unstructured.Unstructured{Object: o}
	annotations := resource.Map(o, "metadata", "annotations")

	before, err := listOf(u)
	if err != nil {
		return nil //nolint:nilerr // It does not parse, and does not then.
	}

	var used []v1alpha1.Allowance

	entries, _ := allowance.ParseTrace(u)
	had, _ := allowance.ParseTrace(&unstructured.Unstructured{Object: stored})

	if parent != nil {
		list, _ := listOf(parent)
		used = slices.DeleteFunc(list, func(a v1alpha1.Allowance) bool {
			return !usedBefore(entries, a) || !byUse(parent, a) || a.Digest == "" && !usedBefore(had, a)
		})
	}

	last := lastRequest(u, before)

	for _, key := range []string{v1alpha1.AnnotationAllowances, v1alpha1.AnnotationGate} {
		if text, ok := annotations[key].(string); ok {
			annotations[key] = Text(text)
		}
	}

	rec := v1alpha1.ObjectRecord{}
	if last > 0 {
		rec.Request = allowance.ID(generation(u), last)
	}

	for _, a := range used {
		infer(&a)
		rec.Used = append(rec.Used, allowance.UseOf(a))
	}

	if name := resource.Annotation(u, v1alpha1.AnnotationLastUpgrade); name != "" {
		uid := windows[name]
		if uid == "" {
			uid = types.UID(name)
		}

		rec.Windows = []types.UID{uid}
	}

	if text := allowance.FormatRecord(rec); text != "" && resource.Annotation(u, v1alpha1.AnnotationRecord) == "" {
		annotations[v1alpha1.AnnotationRecord] = text
	}

	return compare(u, before, last)
}

// compare compares what an object meant with what it means.
func compare(u *unstructured.Unstructured, before []v1alpha1.Allowance, last int64) error {
	after, err := allowance.Parse(u)
	if err == nil && len(after) != len(before) {
		err = errMeaning
	}

	if err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}

	for i, a := range before {
		if a.Source.Type != "" {
			continue // It was converted before.
		}

		if was, is := meant(a), means(after[i]); was != is {
			return fmt.Errorf("%s %s: %s: %w: %+v, and %+v", u.GetKind(), u.GetName(), describe(a), errMeaning, was, is)
		}
	}

	if got := allowance.LastRequest(u, generation(u)); got != last {
		return fmt.Errorf("%s %s: request: %w: %d, and %d", u.GetKind(), u.GetName(), errMeaning, last, got)
	}

	return nil
}

func listOf(u *unstructured.Unstructured) ([]v1alpha1.Allowance, error) {
	var out []v1alpha1.Allowance

	err := yaml.Unmarshal([]byte(resource.Annotation(u, v1alpha1.AnnotationAllowances)), &out)

	return out, err //nolint:wrapcheck // It says enough.
}

// meaning is what an allowance says by its predicates.
type meaning struct {
	window, alone, deletion, inherited, implicit, creates bool
	field                                                 string
	request                                               int64
}

func means(a v1alpha1.Allowance) meaning {
	actions := gate.Acting(a.Mutations)
	built := a.Source.Type == v1alpha1.SourceCreation || a.Source.Type == v1alpha1.SourceApproval

	out := meaning{
		window: a.Source.Type == v1alpha1.SourceWindow, alone: allowance.OfWindowAlone(a), deletion: allowance.ByDeletion(a),
		inherited: a.Source.From != "", implicit: a.Source.Type == v1alpha1.SourceCreation,
		creates: built && slices.Contains(actions, gate.ActionCreate) && !slices.Contains(actions, gate.ActionDelete),
		field:   allowance.Field(a), request: allowance.RequestOf(a),
	}

	if allowance.OfApproval(a) {
		out.creates, out.field = false, ""
	}

	return out
}

// meant is what its predicates said when they looked at users, hops and verbs.
func meant(a v1alpha1.Allowance) meaning {
	out := meaning{implicit: creation(a) && !approved(a), creates: creates(a)}

	if n := len(a.Trace); n > 0 {
		out.field, out.request = a.Trace[n-1].Field, a.Trace[n-1].Request
		out.window = allowance.External(a) && n == 1 && a.Initiator == allowance.InitiatorOfWindow(a.Policy)
		out.inherited = n > 1 && out.field == v1alpha1.MutationDelete && a.Trace[n-2].Field == v1alpha1.MutationDelete
	}

	out.deletion = out.field == v1alpha1.MutationDelete
	out.alone = out.window && out.field == string(v1alpha1.RelationExternal)

	switch {
	case out.alone:
		out.field = ""
	case out.deletion:
		out.window, out.creates, out.implicit = false, false, false
	case a.Digest != "":
		out.creates, out.field = false, ""
	}

	return out
}

// creation reports whether a parent that was never ready gave an allowance. A gate's record names the actions of it alone that
// are under way.
func creation(a v1alpha1.Allowance) bool {
	made := len(a.Trace) > 0 && !slices.ContainsFunc(a.Trace, func(h v1alpha1.Hop) bool { return h.Field != v1alpha1.MutationCreate })

	return creates(a) && (made || slices.Equal(gate.Acting(a.Mutations), []string{gate.ActionCreate, gate.ActionUpdate}))
}

// approved reports whether what is approved led to an allowance.
func approved(a v1alpha1.Allowance) bool {
	return slices.ContainsFunc(a.Trace, func(h v1alpha1.Hop) bool { return h.Kind == kindApproval })
}

func creates(a v1alpha1.Allowance) bool {
	actions := gate.Acting(a.Mutations)

	return a.Policy == "" && slices.Contains(actions, gate.ActionCreate) && !slices.Contains(actions, gate.ActionDelete)
}

// lastRequest is the last request within the generation of an object, as its trace and its allowances showed.
func lastRequest(u *unstructured.Unstructured, list []v1alpha1.Allowance) int64 {
	var out int64

	entries, _ := allowance.ParseTrace(u)
	for _, e := range entries {
		if n := len(e.Trace); n > 0 && e.Generation == generation(u) {
			out = max(out, e.Trace[n-1].Request)
		}
	}

	for _, a := range list {
		if n := len(a.Trace); n > 0 && a.Generation == generation(u) {
			out = max(out, a.Trace[n-1].Request)
		}
	}

	return out
}

// generation is that of an object in its traces: of a kind that has none it is 1.
func generation(u *unstructured.Unstructured) int64 { return max(u.GetGeneration(), 1) }

// byUse is [allowance.ByUse] as it was.
func byUse(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	if a.Digest != "" {
		return true
	}

	infer(&a)

	return allowance.ByUse(u, a)
}

// usedBefore reports whether a child's trace names an allowance of its parent.
func usedBefore(trace []v1alpha1.TraceEntry, a v1alpha1.Allowance) bool {
	last := len(a.Trace) - 1

	return slices.ContainsFunc(trace, func(e v1alpha1.TraceEntry) bool {
		if e.Initiator != a.Initiator || last < 0 || len(e.Trace) != last+2 || !slices.EqualFunc(e.Trace[:last], a.Trace[:last], sameHop) {
			return false
		}

		hop := e.Trace[last]
		if e.Field == v1alpha1.MutationCreate && hop.Field == v1alpha1.MutationCreate {
			hop.Field = a.Trace[last].Field
		}

		return sameHop(hop, a.Trace[last])
	})
}

func sameHop(a, b v1alpha1.Hop) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Generation == b.Generation && a.Request == b.Request && a.Field == b.Field &&
		a.Attestations[v1alpha1.AttestationDigest] == b.Attestations[v1alpha1.AttestationDigest]
}
