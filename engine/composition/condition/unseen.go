// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// While the API server asks no webhook, for somebody has taken its configuration away, an edit of an
// XR is stored and nobody records it. Nor is there anybody to say whose it is. The function sees that
// the spec is another one than in the run before, at another generation, of which nothing tells:
// neither the record of edits nor the trace.

// A seen spec is one of which it is known who has made it so, and its generation.
type seen struct {
	spec       string
	generation int64
}

// look says which spec was seen last, this one included, and whether an edit of it was not. Records is
// true where edits of the XR leave a record.
func (l *lister) look(records bool) {
	if !records || metav1.GetControllerOf(l.xr) != nil { // What is composed Crossplane writes, and nobody records that.
		return
	}

	was, is := seen{l.was.Spec, l.was.SpecGeneration}, seen{specDigest(l.xr), resource.Generation(l.xr)}
	l.seen, l.unseen = is, false

	switch {
	case was.spec == "":
		if recorded(l.xr) { // What it was before that is not known.
			l.seen = seen{}
		}
	case l.was.Unseen: // Until it is taken back, or nothing that is held follows from it.
		if was.spec != is.spec {
			l.seen, l.unseen = was, true
		}
	case recorded(l.xr): // Once that is taken back it is as it was, or as somebody has made it who may.
		l.seen = was
	case was.spec == is.spec, is.generation == l.was.Progress.Generation, explained(l.xr, was.generation):
	default:
		l.seen, l.unseen = was, true
	}
}

// recorded reports whether an XR records an edit, or what it records cannot be read.
func recorded(xr *unstructured.Unstructured) bool {
	edits, err := allowance.ParseStored(xr)

	return err != nil || len(edits) > 0
}

// explained reports whether the trace of an XR tells of a change since a generation.
func explained(xr *unstructured.Unstructured, since int64) bool {
	entries, err := allowance.ParseTrace(xr)

	return err != nil || slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Generation > since })
}

// specDigest stands for the spec of an XR, as [shownSpec] has it.
func specDigest(xr *unstructured.Unstructured) string {
	return digest.OfLists(nil, []any{map[string]any{fieldSpec: shownSpec(xr)}})
}

// shownSpec is the spec of an XR, without what Crossplane writes there by itself, and without
// defaults, of which a new version of its definition may have more. What is hidden is masked.
func shownSpec(xr *unstructured.Unstructured) map[string]any {
	object := xr.Object
	if fields, err := managedfields.Of(xr, ""); err == nil && !fields.All.Empty() {
		fields.Own = fields.All
		object = managedfields.Extract(map[string]any{fieldSpec: object[fieldSpec]}, fields)
	}

	spec := maps.Clone(resource.Map(object, fieldSpec))
	for _, key := range crossplanes() {
		delete(spec, key)
	}

	if own := resource.Map(spec, "crossplane"); own != nil {
		own = maps.Clone(own)
		for _, key := range crossplanes() {
			delete(own, key)
		}

		if spec["crossplane"] = own; len(own) == 0 {
			delete(spec, "crossplane")
		}
	}

	return resource.Map(mask.Object(map[string]any{fieldSpec: spec}, func([]string, any) string { return mask.Text }), fieldSpec)
}

// hashedFields are hashes of the fields of an XR's spec, each by its name.
func hashedFields(xr *unstructured.Unstructured) map[string]uint32 {
	spec := shownSpec(xr)
	out := make(map[string]uint32, len(spec))

	for name, value := range spec {
		out[name] = uint32(wish.Hash(name+"\x00"+digest.OfLists(nil, []any{value})) >> 32) //nolint:mnd // Its upper half.
	}

	return out
}

// formatFields writes hashes of fields, in order.
func formatFields(fields map[string]uint32) string {
	raw := make([]byte, 0, len(fields)*hashBytes)
	for _, sum := range slices.Sorted(maps.Values(fields)) {
		raw = binary.BigEndian.AppendUint32(raw, sum)
	}

	return base64.RawStdEncoding.EncodeToString(raw)
}

const (
	hashBytes = 4
	fieldSpec = "spec"
)

// EditedSince are the fields of an XR's spec that somebody has set since the last run, as far as that run is on record: what is held
// now may follow from them, whether anything else records that or not. One that was taken away is not among them.
func EditedSince(xr *unstructured.Unstructured) []string {
	was, known := resource.StateOf(xr)
	if !known || was.Fields == "" {
		return nil
	}

	raw, err := base64.RawStdEncoding.DecodeString(was.Fields)
	if err != nil {
		return nil
	}

	before := map[uint32]bool{}
	for ; len(raw) >= hashBytes; raw = raw[hashBytes:] {
		before[binary.BigEndian.Uint32(raw)] = true
	}

	var out []string

	for name, sum := range hashedFields(xr) {
		if !before[sum] {
			out = append(out, fieldpath.Path{fieldpath.Field(fieldSpec), fieldpath.Field(name)}.String())
		}
	}

	slices.Sort(out)

	return out
}

// crossplanes are the fields that Crossplane writes of an XR, in its spec or below spec.crossplane.
func crossplanes() []string {
	return []string{
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionUpdatePolicy", "resourceRef", "resourceRefs",
		"writeConnectionSecretToRef",
	}
}

// NewRevision reports whether an XR is composed by another revision of its Composition than when nothing was held last.
func NewRevision(xr *unstructured.Unstructured) bool {
	was, known := resource.StateOf(xr)
	is := resource.RevisionOf(xr)

	return known && is != "" && was.Revision != "" && is != was.Revision
}
