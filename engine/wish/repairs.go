// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// repaired is in each text of a record with repairs.
const repaired = "repairs:"

// maxRepairs is of how many places of an object repairs are remembered.
const maxRepairs = 16

// KeyOfCreation is that of an object which is created again, see [Repairs].
const KeyOfCreation = v1alpha1.MutationCreate

// KeyOf is that of a part of an object, see [Repairs]; false where the object has none there.
func (f *Finder) KeyOf(object map[string]any, at change.Path) (string, bool) {
	p, ok := f.find(object, at)

	return strconv.FormatUint(uint64(p), 16), ok
}

// Repairs are those of a composed resource, by where they are, as the annotation says. The error names that.
func Repairs(u *unstructured.Unstructured) (map[string]v1alpha1.Repairs, error) {
	w, err := partOf(u, repaired)
	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return w.Repairs, nil
}

// WithRepairs is the text of a record, which may be empty, with repairs of an object: the latest.
func WithRepairs(text string, of *unstructured.Unstructured, all map[string]v1alpha1.Repairs) (string, error) {
	if len(all) > maxRepairs {
		keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return int(all[b].Last - all[a].Last) })
		all = maps.Clone(all)

		for _, key := range keys[maxRepairs:] {
			delete(all, key)
		}
	}

	return withPart(text, of, func(w *written) { w.Repairs = all })
}

// RepairsNow reports whether Crossplane puts back a part of an object, as the record on the new one says and that on the old one
// does not yet.
func RepairsNow(was, is *unstructured.Unstructured, at change.Path) bool {
	before, err := Repairs(was)
	now, unread := Repairs(is)

	if err != nil || unread != nil || len(now) == 0 {
		return false
	}

	key, ok := (*Finder)(nil).KeyOf(is.Object, at)
	r, repairs := now[key]

	return ok && repairs && r != before[key]
}

// CreatesAgain reports whether Crossplane creates a composed resource again that was let through before, as its record and what the
// XR has on record of it say.
func CreatesAgain(u, xr *unstructured.Unstructured) bool {
	all, err := Repairs(u)
	state, known := resource.StateOf(xr)

	return err == nil && known && MadeOf(state).Has(resource.ComposedName(u), all[KeyOfCreation].Of)
}

// Made are digests of what was last let through of composed resources, by hashes of their names.
type Made map[uint32]uint64

// madeSize is how many bytes one takes.
const madeSize = 4 + 8

// MadeOf are those in the state of an XR. What cannot be read says nothing.
func MadeOf(state *v1alpha1.State) Made {
	raw, err := base64.RawStdEncoding.DecodeString(state.Made)
	if err != nil || len(raw)%madeSize != 0 {
		return nil
	}

	out := make(Made, len(raw)/madeSize)
	for ; len(raw) > 0; raw = raw[madeSize:] {
		out[binary.BigEndian.Uint32(raw)] = binary.BigEndian.Uint64(raw[4:madeSize])
	}

	return out
}

// Set notes what a pipeline desires of a composed resource, and is let through.
func (m Made) Set(name string, desired map[string]any) { m[hashOfName(name)] = Hash(desired) }

// Keep takes what others have of a composed resource, if anything.
func (m Made) Keep(name string, from Made) {
	if sum, ok := from[hashOfName(name)]; ok {
		m[hashOfName(name)] = sum
	}
}

// Of is the digest of what was let through of a composed resource; empty where that is not known.
func (m Made) Of(name string) string {
	sum, ok := m[hashOfName(name)]
	if !ok {
		return ""
	}

	return fmt.Sprintf("%016x", sum)
}

// Has reports whether that is a digest.
func (m Made) Has(name, digest string) bool { return digest != "" && m.Of(name) == digest }

// Format writes them, in order.
func (m Made) Format() string {
	raw := make([]byte, 0, len(m)*madeSize)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		raw = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(raw, name), m[name])
	}

	return base64.RawStdEncoding.EncodeToString(raw)
}

func hashOfName(name string) uint32 { return uint32(fnv64(offset64, name) >> 32) } //nolint:mnd // Its upper half.
