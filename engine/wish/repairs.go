// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// repaired is in each text of a record with repairs.
const repaired = "repairs:"

// MaxPlaces is of how many places of an object repairs are remembered: no more are repaired.
const MaxPlaces = 64

// KeyOfCreation is that of an object which is created again, see [Repairs].
const KeyOfCreation = v1alpha1.MutationCreate

// KeyOf is that of a change between two versions of an object, see [Repairs]; false where neither has anything there.
func (f *Finder) KeyOf(was, is map[string]any, c change.Change) (string, bool) {
	at, in := c.Path, is

	if c.Gone || c.Removal() {
		if in = was; c.Was != nil {
			at = c.Was
		}
	}

	p, ok := f.find(in, at)

	return inLetters(uint64(p)), ok
}

// inLetters is a number of 48 bits as a key. YAML has no order of its own for keys with digits.
func inLetters(n uint64) string {
	out := make([]byte, 2*pathSize) //nolint:mnd // A letter for each half of a byte.
	for i := range out {
		out[len(out)-1-i] = 'a' + byte(n&0xf)
		n >>= 4
	}

	return string(out)
}

// Repairs are those of a composed resource, by where they are, as the annotation says. The error names that.
func Repairs(u *unstructured.Unstructured) (map[string]v1alpha1.Repairs, error) {
	w, err := partOf(u, repaired)
	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	maps.DeleteFunc(w.Repairs, func(_ string, r v1alpha1.Repairs) bool { return r.Count <= 0 })

	return w.Repairs, nil
}

// WithRepairs is the text of a record, which may be empty, with repairs of an object.
func WithRepairs(text string, of *unstructured.Unstructured, all map[string]v1alpha1.Repairs) (string, error) {
	return withPart(text, of, func(w *written) { w.Repairs = all })
}

// RepairsNow reports whether Crossplane puts back a part of an object by a change, as the record on the new one says and that on the
// old one does not yet.
func RepairsNow(was, is *unstructured.Unstructured, c change.Change) bool {
	before, err := Repairs(was)
	now, unread := Repairs(is)

	if err != nil || unread != nil || len(now) == 0 {
		return false
	}

	key, ok := (*Finder)(nil).KeyOf(was.Object, is.Object, c)
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
