// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

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

// entry is an element of one of our annotations: what all have in common.
type entry struct {
	Initiator string         `json:"initiator"`
	Trace     []v1alpha1.Hop `json:"trace"`
	text      string
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

func (e entry) last() (v1alpha1.Hop, bool) {
	if len(e.Trace) == 0 {
		return v1alpha1.Hop{}, false
	}

	return e.Trace[len(e.Trace)-1], true
}
