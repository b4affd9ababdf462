// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// What is held stays held, however much a later edit of the parent allows: nobody who made that asked for it. So an object
// has on record at which places changes of it are held, and since which change of its parent. A place is a path with the keys
// of elements in the place of their indices, or create or delete. Nothing of it is dropped: where there are too many places
// they are recorded by what is above them.

// Place is where a change is: the segments of its path.
type Place []string

// Withheld are the places of an object at which changes are held, as hashes.
type Withheld map[uint64]Since

// Since is which change of the parent a change was first held at.
type Since struct {
	// At is the ID of the last change of the parent then.
	At string
	// Of are the fields of the parent whose change had not settled then, or that somebody had stored who may not, in order; each as
	// [PlaceOf] has it.
	Of string
	// Stored is true where the parent is a Claim and has the value that is copied: as long as it has, no edit of another field
	// serves that.
	Stored bool
	// Edited is true where it may follow from what somebody had stored in the parent who may not, and its controller had not looked
	// since: no earlier allowance serves it either.
	Edited bool
}

// fields that it is since the change of.
func (s Since) fields() []string {
	if s.Of == "" {
		return nil
	}

	return strings.Split(s.Of, "\n")
}

// NewSince is since a change of the parent, of some of its fields.
func NewSince(at string, fields []string) Since {
	fields = slices.Compact(slices.Sorted(slices.Values(fields)))

	return Since{At: at, Of: strings.Join(fields[:min(len(fields), maxSinceFields)], "\n")}
}

// maxSinceFields is the most fields that are recorded of one change of the parent; what follows from others serves nothing that
// was held before.
const maxSinceFields = 16

// After reports whether it is since after a change.
func (s Since) After(id string) bool { return CompareID(s.At, id) > 0 }

// hash of the first segments of a place.
func (p Place) hash(n int) uint64 {
	h := fnv.New64a()

	for _, segment := range p[:min(n, len(p))] {
		_, _ = h.Write([]byte(segment)) // It returns no error.
		_, _ = h.Write([]byte{0})
	}

	return h.Sum64()
}

// above is the hash that stands above what is held below the first segments of a place.
func (p Place) above(n int) uint64 { return p.hash(n) + 1 }

// At returns since when a change at a place is held, or one above it or below it.
func (w Withheld) At(p Place) (Since, bool) {
	if len(w) == 0 {
		return Since{}, false
	}

	for n := len(p); n > 0; n-- {
		if since, ok := w[p.hash(n)]; ok {
			return since, true
		}
	}

	since, ok := w[p.above(len(p))]

	return since, ok
}

// add adds a place, and what stands above it.
func (w Withheld) add(p Place, since Since) {
	put := func(key uint64) {
		if other, ok := w[key]; ok {
			w[key] = earlier(since, other)
		} else {
			w[key] = since
		}
	}

	put(p.hash(len(p)))

	for n := 1; n < len(p); n++ {
		put(p.above(n))
	}
}

// A Hold is a place at which a change is held now.
type Hold struct {
	Place Place
	// Repair is true where the change reverts what somebody did by hand: nobody asks for anything new, and any allowance serves it.
	Repair bool
}

// byHand stands for the fields of what a repair is since.
const byHand = "(by hand)"

// Next is what is withheld now: since when it was before, or since now. Where it is not known any more what it
// follows from, no field counts of what is held since now or since the same change of the parent.
func (w Withheld) Next(holds []Hold, now Since, unknown bool) Withheld {
	if len(holds) == 0 {
		return nil
	}

	deepest := 0
	for _, h := range holds {
		deepest = max(deepest, len(h.Place))
	}

	out := Withheld{}

	for n := deepest; n > 0; n-- {
		clear(out)

		for _, h := range holds {
			out.add(h.Place[:min(n, len(h.Place))], w.since(h, now, unknown))
		}

		if len(out) <= v1alpha1.MaxWithheld && len(out.sinces()) <= maxSinces {
			break
		}
	}

	return out
}

// since is since when a change is held.
func (w Withheld) since(h Hold, now Since, unknown bool) Since {
	since, known := w.At(h.Place)

	switch {
	case h.Repair && known:
		since.Of = byHand
	case h.Repair:
		since = Since{At: now.At, Of: byHand}
	case !known || since.Repair():
		since = now
	}

	if unknown && since.At == now.At && !h.Repair {
		since.Of = ""
	}

	return since
}

// Repairs reports whether anything is held at a place, or below it, and anything that is held reverts what somebody did by hand:
// of a hash nobody knows what it is below.
func (w Withheld) Repairs(segments ...string) bool {
	if _, held := w.At(segments); !held {
		return false
	}

	for _, since := range w {
		if since.Repair() {
			return true
		}
	}

	return false
}

// Repair reports whether what is held reverts what somebody did by hand.
func (s Since) Repair() bool { return s.Of == byHand }

// maxSinces is since how many changes of the parent changes of one object are held, at most.
const maxSinces = 32

func (w Withheld) sinces() map[Since]bool {
	out := map[Since]bool{}
	for _, since := range w {
		out[since] = true
	}

	return out
}

// earlier is the earlier of two, of the fields that both are of: another serves only one of them. What is a repair gives way to
// what is none.
func earlier(a, b Since) Since {
	if a.Repair() && !b.Repair() {
		return b
	}

	if b.Repair() {
		return a
	}

	at := a.At
	if CompareID(b.At, at) < 0 {
		at = b.At
	}

	of := b.fields()

	out := NewSince(at, slices.DeleteFunc(a.fields(), func(field string) bool { return !slices.Contains(of, field) }))
	out.Edited = a.Edited || b.Edited

	return out
}

// Serves reports whether an allowance of the parent serves what is held since then: it is no later than that, or somebody has
// changed anew what it is held because of. Stored are the fields of the parent that somebody has changed who may not.
func (s Since) Serves(a v1alpha1.Allowance, stored []string) bool {
	if OfApproval(a) || ByDeletion(a) || s.Repair() || !s.Stored && !s.Edited && CompareID(a.ID, s.At) <= 0 {
		return true
	}

	of := s.fields()

	if s.Stored { // A replay has it though another policy allows that edit.
		return Repeats(a, s.At, of...)
	}

	return slices.ContainsFunc(of, func(field string) bool {
		return givenFor(a, func(place string) bool { return Related(field, place) })
	}) &&
		!slices.ContainsFunc(of, func(field string) bool {
			return slices.ContainsFunc(stored, func(other string) bool { return Related(field, other) })
		})
}

// Repeats reports whether a change that gave an allowance was of one of these fields, at an ID or later.
func Repeats(a v1alpha1.Allowance, id string, places ...string) bool {
	return CompareID(a.ID, id) >= 0 && givenFor(a, func(place string) bool { return slices.Contains(places, place) })
}

// givenFor reports whether one of the fields whose change gave an allowance is as is asked.
func givenFor(a v1alpha1.Allowance, is func(place string) bool) bool {
	return is(PlaceOf(a)) || slices.ContainsFunc(a.Source.Also, is)
}

// Record writes what is withheld as objects have it.
func (w Withheld) Record() []v1alpha1.WithheldPlaces {
	hashes := map[Since][]uint64{}
	for hash, since := range w {
		hashes[since] = append(hashes[since], hash)
	}

	out := make([]v1alpha1.WithheldPlaces, 0, len(hashes))

	for since, list := range hashes {
		slices.Sort(list)

		raw := make([]byte, 0, len(list)*sizeOfHash)
		for _, hash := range list {
			raw = binary.BigEndian.AppendUint64(raw, hash)
		}

		out = append(out, v1alpha1.WithheldPlaces{
			At: since.At, Of: since.fields(), Edited: since.Edited, Places: base64.RawStdEncoding.EncodeToString(raw),
		})
	}

	slices.SortFunc(out, func(a, b v1alpha1.WithheldPlaces) int {
		return cmp.Or(CompareID(a.At, b.At), slices.Compare(a.Of, b.Of), cmp.Compare(a.Places, b.Places))
	})

	return out
}

const sizeOfHash = 8

// ReadWithheld reads what [Withheld.Record] writes.
func ReadWithheld(record []v1alpha1.WithheldPlaces) (Withheld, error) {
	if len(record) == 0 {
		return nil, nil //nolint:nilnil // Nothing is, which is no error.
	}

	out := Withheld{}

	for _, r := range record {
		raw, err := base64.RawStdEncoding.DecodeString(r.Places)

		_, _, ok := parseID(r.At)
		if err == nil && (!ok || len(raw)%sizeOfHash != 0) {
			err = errNotUnderstood
		}

		if err != nil {
			return nil, fmt.Errorf("cannot read what is withheld: %w", err)
		}

		for ; len(raw) > 0; raw = raw[sizeOfHash:] {
			out[binary.BigEndian.Uint64(raw)] = Since{At: r.At, Of: strings.Join(r.Of, "\n"), Edited: r.Edited}
		}
	}

	return out, nil
}

// A Listed change is one that the list of what is held has.
type Listed struct {
	Place Place
	// At is the ID of the last change of the parent when it was first held.
	At string
}

// Besides adds what a list says is held, where nothing else is known: what was to record that was not applied.
func (w Withheld) Besides(list []Listed) Withheld {
	var out Withheld

	for _, l := range list {
		if _, known := w.At(l.Place); known {
			continue
		}

		if out == nil {
			out = Withheld{}
		}

		out.add(l.Place, Since{At: l.At})
	}

	return w.And(out)
}

// OfNoField is what is withheld because of no change of a field of the parent.
func (w Withheld) OfNoField() Withheld {
	out := maps.Clone(w)
	maps.DeleteFunc(out, func(_ uint64, since Since) bool { return since.Of != "" })

	return out
}

// Without leaves out places at which changes are stored.
func (w Withheld) Without(stored []Place) Withheld {
	out := maps.Clone(w)
	for _, p := range stored {
		delete(out, p.hash(len(p)))
	}

	return out
}

// With adds what is withheld now, which goes before what was.
func (w Withheld) With(now Withheld) Withheld {
	if len(w) == 0 {
		return now
	}

	out := maps.Clone(w)
	maps.Copy(out, now)

	return out
}

// NotAfter has what is withheld since after a change be since before any: it is of another parent, from whose backup this one was
// made, and none of its own changes serves it.
func (w Withheld) NotAfter(id string) Withheld {
	out := maps.Clone(w)

	for hash, since := range out {
		if since.After(id) {
			out[hash] = Since{At: ID(0, 0)}
		}
	}

	return out
}

// And returns what is withheld here and there.
func (w Withheld) And(other Withheld) Withheld {
	if len(w) == 0 {
		return other
	}

	out := maps.Clone(w)

	for hash, since := range other {
		if have, ok := out[hash]; ok {
			since = earlier(have, since)
		}

		out[hash] = since
	}

	return out
}
