// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"fmt"
	"maps"

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
