// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// What the writer asks for of our annotations is compared with what is stored. Controllers copy
// annotations from one object to another without meaning
// anything by it, so their writes are put right silently; a person who writes a value
// of theirs is reported. What we wrote ourselves, when we were asked about the same
// request before, is no forgery.

// overrule notes the annotations of which the writer's value is not what is stored.
func (d *Decision) overrule(
	o request.Objects, by request.Writer, earlier input.Earlier, j *rule.Judged, back []change.Change, s *stamp.Stamped,
) {
	for key, v := range resource.Map(o.Asked.Object, "metadata", "annotations") {
		value, _ := v.(string)
		if !input.Ours(key) || resource.Annotation(s.Object, key) == value {
			continue
		}

		d.Overruled = append(d.Overruled, key)

		switch {
		case !isForged(o, by, earlier, j, back, s.Object, key, value):
		case len(j.Changes) > 0: // As a rollback copies what an older ReplicaSet has.
			d.Warnings = append(d.Warnings, keptMessage(s.Object, key))
		default:
			d.Forged = append(d.Forged, key)
		}
	}

	slices.Sort(d.Overruled)
	slices.Sort(d.Forged)
}

// isForged reports whether a new value of our annotation was made up by a person,
// and not carried along from the parent or from our earlier answer.
func isForged(
	o request.Objects, by request.Writer, earlier input.Earlier, j *rule.Judged, back []change.Change,
	object *unstructured.Unstructured, key, value string,
) bool {
	if o.Operation != request.OperationUpdate || by.User.Machine() || value == "" || value == resource.Annotation(o.Old, key) {
		return false
	}

	if o.Parent != nil && resource.Annotation(o.Parent, key) == value {
		return false
	}

	return !isCopied(object, key, value) && !answered(o, earlier, j, back, object, key, value)
}

// isCopied reports whether a value comes from another object, as a rollback copies
// the annotations of an older ReplicaSet to its Deployment.
func isCopied(object *unstructured.Unstructured, key, value string) bool {
	switch key {
	case v1alpha1.AnnotationInitialized, v1alpha1.AnnotationRecord:
		return true
	case v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace:
	default:
		return false
	}

	return !slices.ContainsFunc(entries(value), func(e entry) bool {
		last, ok := e.last()

		return !ok || last.Kind == object.GetKind() && last.Name == resource.Name(object)
	})
}

// answered reports whether a value is what we answer this user for a change of
// this object: every entry that the old object does not have ends with a hop of
// the object, at the generation that comes, and has the initiator of an allowed
// change of it. An answer to what another webhook then changed is not the one
// we give now.
func answered(
	o request.Objects, earlier input.Earlier, j *rule.Judged, back []change.Change, object *unstructured.Unstructured,
	key, value string,
) bool {
	switch key {
	case v1alpha1.AnnotationHeld:
		return j.Action == v1alpha1.ActionHold || !j.Allowed()
	case v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace:
	default:
		return false
	}

	was := entries(resource.Annotation(o.Old, key))
	generation := stamp.PredictGeneration(o, j.Changes, back)
	number := stamp.RequestNumber(o, earlier, generation)

	for _, e := range entries(value) {
		if slices.ContainsFunc(was, func(o entry) bool { return o.text == e.text }) {
			continue
		}

		last, ok := e.last()
		if !ok || last.Kind != object.GetKind() || last.Name != resource.Name(object) ||
			last.Generation != generation || last.Request != number || !began(j.Findings, e.Initiator) {
			return false
		}
	}

	return true
}

// began reports whether an allowed change of the request has an initiator.
func began(findings []finding.Finding, initiator string) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool {
		return f.Verdict == finding.Allowed && f.Cause.Initiator == initiator
	})
}

// conflict says why what will be stored is not what is decided; empty where it is.
// What is held was taken back before, and is no change any more.
func conflict(o request.Objects, j *rule.Judged, s *stamp.Stamped) string {
	if j.Action != v1alpha1.ActionDeny && j.Action != v1alpha1.ActionHold {
		return ""
	}

	if j.Action == v1alpha1.ActionHold && o.Operation == request.OperationUpdate && !j.Allowed() {
		return fmt.Sprintf("%s: %s, and could not be kept back, for something else set it again, "+
			"or Kausality was not asked before: try again", o.Title(), unallowedMessage(j.Findings))
	}

	differ := differing(o, s)
	if len(differ) == 0 {
		return ""
	}

	return fmt.Sprintf("%s: %s is not what Kausality gives for this change: "+
		"another webhook changed the object after it, or Kausality was not asked before: try again", o.Title(), strings.Join(differ, ", "))
}

// differing are the annotations of ours, and the gate that opens, that would be stored otherwise than
// they should. What was held is no change any more, so nothing shows what to
// record of it; an edit was recorded at another moment.
func differing(o request.Objects, s *stamp.Stamped) []string {
	got := resource.Map(o.Asked.Object, "metadata", "annotations")
	want := resource.Map(s.Object.Object, "metadata", "annotations")

	var out []string

	for _, annotations := range []map[string]any{got, want} {
		for key := range annotations {
			if input.Ours(key) && key != v1alpha1.AnnotationHeld && !slices.Contains(out, key) && !sameFinally(o, s.Object, key) {
				out = append(out, key)
			}
		}
	}

	if s.Opens && !management.Same(input.SetOf(o.Asked), input.SetOf(s.Object)) {
		out = append(out, input.FieldPolicies)
	}

	slices.Sort(out)

	return out
}

// sameFinally reports whether an annotation is as good as the one that is decided.
// Since the mutating webhook was asked, the API server may have made a name and
// filled in other fields, which then count as changed too: for the same reason,
// to the same end, but by another path.
func sameFinally(o request.Objects, object *unstructured.Unstructured, key string) bool {
	if resource.Annotation(o.Asked, key) == resource.Annotation(object, key) {
		return true
	}

	switch key {
	case v1alpha1.AnnotationAllowances:
		got, gotErr := allowance.Parse(o.Asked)
		want, wantErr := allowance.Parse(object)

		return gotErr == nil && wantErr == nil && sameGrants(got, want) && sameGrants(want, got)
	case v1alpha1.AnnotationTrace:
		got, gotErr := allowance.ParseTrace(o.Asked)
		want, wantErr := allowance.ParseTrace(object)

		return gotErr == nil && wantErr == nil && len(got) > 0 && len(want) > 0 &&
			got[0].Generation == want[0].Generation && got[0].Initiator == want[0].Initiator
	case v1alpha1.AnnotationRecord:
		got, gotErr := allowance.ParseRecord(o.Asked)
		want, wantErr := allowance.ParseRecord(object)

		return gotErr == nil && wantErr == nil && got.Request == want.Request && len(got.Used) >= len(want.Used) &&
			slices.Equal(got.Windows, want.Windows)
	case v1alpha1.AnnotationGate: // It has the time at which the mutating webhook was asked; the manager writes one that is not there.
		return o.Operation == request.OperationCreate && resource.Annotation(o.Asked, key) == "" || gate.SameRecord(o.Asked, object)
	default:
		return false
	}
}

// sameGrants reports whether every allowance is among others, whatever path led to
// it.
func sameGrants(list, others []v1alpha1.Allowance) bool {
	return !slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(others, func(b v1alpha1.Allowance) bool {
			return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Mutation == b.Mutation && a.Relation == b.Relation &&
				slices.Equal(a.Mutations, b.Mutations) && a.Generation == b.Generation && a.Initiator == b.Initiator &&
				allowance.SameGiver(a, b)
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
