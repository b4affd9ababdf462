// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A proposal is what may be stored of the new object of a request: with the
// annotations that only Kausality writes as they were, a gate as it was moved, and what
// holds objects together in its place.
type proposal struct {
	// object may be stored; nil on delete. Its maps are not shared, down to its
	// annotations.
	object *unstructured.Unstructured
	// asked is the new object with the annotations that its writer asks for.
	asked *unstructured.Unstructured
	// composing is true where Crossplane applies a managed resource.
	composing bool
	// announced is true where Crossplane announces that it will delete the resource it
	// applies: it continues to apply it, with the allowance its deletion gives, until the
	// gate is open for that. [Decide] gives the composition function what to announce.
	announced bool
	// kept are fields that were put back, and overruled those of which the writer's
	// value is not what is stored; warnings are for the user.
	kept, overruled, warnings []string
}

// A proposer makes a proposal.
type proposer struct {
	*facts

	out proposal
}

// propose makes the proposal of a request.
func (f *facts) propose() proposal {
	if f.New == nil {
		return proposal{}
	}

	p := &proposer{facts: f, out: proposal{asked: f.New, object: &unstructured.Unstructured{Object: f.New.Object}}}
	cloneMetadata(p.out.object)

	p.readAnnouncement()
	p.restoreAnnotations()
	p.restoreGate()

	if !f.stored {
		p.restoreLinks()
	}

	return p.out
}

// readAnnouncement reads whether Crossplane applies a managed resource, and whether it
// announces its deletion.
func (p *proposer) readAnnouncement() {
	if p.Operation != OperationUpdate || !p.byCrossplane() || !resource.IsManaged(p.Old) {
		return
	}

	p.out.composing = true

	list, err := allowance.Parse(p.New)
	p.out.announced = err == nil && slices.ContainsFunc(list, allowance.OfDeletion)
}

// restoreAnnotations gives the object the old one's kausality.io/* annotations.
func (p *proposer) restoreAnnotations() {
	defer dropEmptyAnnotations(p.out.object)

	if p.byManager() && p.User.Name != "" {
		return
	}

	annotations := resource.Map(p.out.object.Object, "metadata", "annotations")

	var was map[string]any
	if p.Old != nil {
		was = resource.Map(p.Old.Object, "metadata", "annotations")
	}

	for key, value := range annotations {
		if !ours(key) || change.Equal(was[key], value) || p.mayWrite(key) {
			continue
		}

		delete(annotations, key)
	}

	if !p.applies() {
		p.restoreMode()
	}

	for key, value := range was {
		if _, written := annotations[key]; ours(key) && !written && !p.mayDrop(key) {
			annotations[key] = value
		}
	}

	if p.out.composing && !p.leaves() {
		delete(annotations, v1alpha1.AnnotationRelease) // What is composed again is not released.
	}
}

// restoreMode gives the object the function's mode that the old one says: what a pipeline asks for is applied with it alone.
func (p *proposer) restoreMode() {
	is, err := gate.ParseDesired(p.out.object)
	audited := p.Old != nil && gate.Audited(p.Old)

	if err != nil || is.V == 0 || audited == (is.Mode == v1alpha1.ModeAudit) {
		return
	}

	if is.Mode = ""; audited {
		is.Mode = v1alpha1.ModeAudit
	}

	annotate(p.out.object, v1alpha1.AnnotationDesiredPolicies, gate.FormatDesired(is))
}

// ours reports whether only Kausality writes an annotation.
func ours(key string) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) }

// mayWrite reports whether the writer's value of an annotation counts: the
// composition function reports, through Crossplane, what the Composition asked
// for.
func (l *lineage) mayWrite(key string) bool {
	switch key {
	case v1alpha1.AnnotationDesiredPolicies:
		return l.byCrossplane() && resource.IsManaged(l.New)
	case v1alpha1.AnnotationWish:
		return l.applies()
	case v1alpha1.AnnotationRelease:
		return l.mayRelease() && resource.Annotation(l.New, key) == v1alpha1.ReleaseOrphan
	default:
		return false
	}
}

// cloneMetadata gives an object separate maps, down to its annotations, which there are
// then; everything else stays shared.
func cloneMetadata(u *unstructured.Unstructured) {
	object := maps.Clone(u.Object)
	if object == nil {
		object = map[string]any{}
	}

	meta := maps.Clone(resource.Map(object, "metadata"))
	if meta == nil {
		meta = map[string]any{}
	}

	annotations := make(map[string]any, len(resource.Map(meta, "annotations"))+2)
	maps.Copy(annotations, resource.Map(meta, "annotations"))

	meta["annotations"] = annotations
	object["metadata"] = meta
	u.Object = object
}

// dropEmptyAnnotations takes the empty map of annotations away.
func dropEmptyAnnotations(u *unstructured.Unstructured) {
	if meta := resource.Map(u.Object, "metadata"); len(resource.Map(meta, "annotations")) == 0 {
		delete(meta, "annotations")
	}
}

// annotate sets one annotation of an object that does not share them; the empty value
// removes it.
func annotate(u *unstructured.Unstructured, key, value string) {
	meta := resource.Map(u.Object, "metadata")
	annotations := resource.Map(meta, "annotations")

	switch {
	case value == "":
		delete(annotations, key)
		dropEmptyAnnotations(u)
	case annotations == nil:
		meta["annotations"] = map[string]any{key: value}
	default:
		annotations[key] = value
	}
}
