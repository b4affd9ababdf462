// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// compare compares what the writer asks for of our own annotations with what is
// stored. Controllers copy annotations from one object to another without
// meaning anything by it, so their writes are put right silently; a person who
// writes a value of their own is told. What we wrote ourselves, when we were
// asked about the same request before, is no forgery.
func (d *decider) compare() {
	if d.Final {
		d.compareFinal()

		return
	}

	for key, v := range resource.Map(d.asked.Object, "metadata", "annotations") {
		value, _ := v.(string)
		if !ours(key) || resource.Annotation(d.New, key) == value {
			continue
		}

		d.decision.Overruled = append(d.decision.Overruled, key)

		switch {
		case !d.forged(key, value):
		case len(d.changes) > 0: // As a rollback copies what an older ReplicaSet has.
			d.decision.Warnings = append(d.decision.Warnings, keptMessage(d.New, key))
		default:
			d.decision.Forged = append(d.decision.Forged, key)
		}
	}

	slices.Sort(d.decision.Overruled)
	slices.Sort(d.decision.Forged)
}

// forged says whether a new value of our annotation was made up by a person,
// and not carried along from the parent or from our own earlier answer.
func (d *decider) forged(key, value string) bool {
	if d.Operation != OperationUpdate || d.User.Machine() || value == "" || value == resource.Annotation(d.Old, key) {
		return false
	}

	if d.Parent != nil && resource.Annotation(d.Parent, key) == value {
		return false
	}

	return !d.copied(key, value) && !d.answered(key, value)
}

// copied says whether a value comes from another object, as a rollback copies
// the annotations of an older ReplicaSet to its Deployment.
func (d *decider) copied(key, value string) bool {
	switch key {
	case v1alpha1.AnnotationInitialized:
		return true
	case v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace:
	default:
		return false
	}

	return !slices.ContainsFunc(entries(value), func(e entry) bool {
		last, ok := e.last()

		return !ok || last.Kind == d.New.GetKind() && last.Name == resource.Name(d.New)
	})
}

// answered says whether a value is what we answer this user for a change of
// this object: every entry that the old object does not have ends with a hop of
// the object, at the generation that comes, and has the initiator of an allowed
// change of it. An answer to what another webhook then changed is not the one
// we give now.
func (d *decider) answered(key, value string) bool {
	switch key {
	case v1alpha1.AnnotationHeld:
		return d.decision.Action == v1alpha1.ActionHold
	case v1alpha1.AnnotationEdits:
		return !d.decision.Allowed()
	case v1alpha1.AnnotationAsked:
		_, alone := d.staying()

		return d.gatekept() && (!d.decision.Allowed() || alone)
	case v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace:
	default:
		return false
	}

	was := entries(resource.Annotation(d.Old, key))
	generation := d.predictGeneration()
	request := d.request(generation)

	for _, e := range entries(value) {
		if slices.ContainsFunc(was, func(o entry) bool { return o.text == e.text }) {
			continue
		}

		last, ok := e.last()
		if !ok || last.Kind != d.New.GetKind() || last.Name != resource.Name(d.New) ||
			last.Generation != generation || last.Request != request || !d.began(e.Initiator) {
			return false
		}
	}

	return true
}

// began says whether an allowed change of the request has an initiator.
func (d *decider) began(initiator string) bool {
	return slices.ContainsFunc(d.decision.Findings, func(f Finding) bool {
		return f.Verdict == Allowed && f.cause.initiator == initiator
	})
}

// compareFinal finds out whether what will be stored is what was decided. What
// is held was taken back before, and is no change any more.
func (d *decider) compareFinal() {
	if a := d.decision.Action; a != v1alpha1.ActionDeny && a != v1alpha1.ActionHold {
		return
	}

	object := fmt.Sprintf("%s %q", d.groupKind().Kind, resource.Name(d.New))

	if d.decision.Action == v1alpha1.ActionHold && d.Operation == OperationUpdate && !d.decision.Allowed() {
		d.decision.Conflict = fmt.Sprintf("%s: %s, and could not be kept back, for something else set it again, "+
			"or Kausality was not asked before: try again", object, unallowedMessage(d.decision.Findings))

		return
	}

	if differ := d.differing(); len(differ) > 0 {
		d.decision.Conflict = fmt.Sprintf("%s: the annotation %s is not what Kausality gives for this change: "+
			"another webhook changed the object after it, or Kausality was not asked before: try again", object, strings.Join(differ, ", "))
	}
}

// differing are the annotations of ours that would be stored otherwise than
// they should. What was held is no change any more, so nothing tells what to
// record of it; an edit was recorded at another moment.
func (d *decider) differing() []string {
	got := resource.Map(d.asked.Object, "metadata", "annotations")
	want := resource.Map(d.New.Object, "metadata", "annotations")

	var out []string

	for _, annotations := range []map[string]any{got, want} {
		for key := range annotations {
			if ours(key) && key != v1alpha1.AnnotationHeld && key != v1alpha1.AnnotationEdits && !slices.Contains(out, key) &&
				!d.sameFinally(key) {
				out = append(out, key)
			}
		}
	}

	slices.Sort(out)

	return out
}

// sameFinally says whether an annotation is as good as the one that is decided.
// Since the mutating webhook was asked, the API server may have made a name and
// filled in other fields, which then count as changed too: for the same reason,
// to the same end, but by another path.
func (d *decider) sameFinally(key string) bool {
	if resource.Annotation(d.asked, key) == resource.Annotation(d.New, key) {
		return true
	}

	switch key {
	case v1alpha1.AnnotationAllowances:
		got, gotErr := allowance.Parse(d.asked)
		want, wantErr := allowance.Parse(d.New)

		return gotErr == nil && wantErr == nil && sameGrants(got, want) && sameGrants(want, got)
	case v1alpha1.AnnotationTrace:
		got, gotErr := allowance.ParseTrace(d.asked)
		want, wantErr := allowance.ParseTrace(d.New)

		return gotErr == nil && wantErr == nil && len(got) > 0 && len(want) > 0 &&
			got[0].Generation == want[0].Generation && got[0].Initiator == want[0].Initiator
	case v1alpha1.AnnotationAsked:
		return gate.SameAsked(resource.Annotation(d.asked, key), resource.Annotation(d.New, key))
	default:
		return false
	}
}

// sameGrants says whether every allowance is among others, whatever path led to
// it.
func sameGrants(list, others []v1alpha1.Allowance) bool {
	return !slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(others, func(b v1alpha1.Allowance) bool {
			return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Mutation == b.Mutation && a.Relation == b.Relation &&
				slices.Equal(a.Mutations, b.Mutations) && a.Generation == b.Generation && a.Initiator == b.Initiator && a.Policy == b.Policy
		})
	})
}

// entry is an element of one of our annotations: what all have in common.
type entry struct {
	Initiator string         `json:"initiator"`
	Trace     []v1alpha1.Hop `json:"trace"`
	text      string
}

func (e entry) last() (v1alpha1.Hop, bool) {
	if len(e.Trace) == 0 {
		return v1alpha1.Hop{}, false
	}

	return e.Trace[len(e.Trace)-1], true
}

// entries reads an annotation; what does not parse has none that could be ours.
func entries(value string) []entry {
	var list []map[string]any
	if yaml.Unmarshal([]byte(value), &list) != nil {
		return []entry{{}}
	}

	out := make([]entry, len(list))

	for i, m := range list {
		raw, err := yaml.Marshal(m)
		if err == nil {
			err = yaml.Unmarshal(raw, &out[i])
		}

		if err != nil {
			return []entry{{}}
		}

		out[i].text = string(raw)
	}

	return out
}
