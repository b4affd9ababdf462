// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Sizes of one leaf of a record in bytes: of its path's hash, and with that of
// its value.
const (
	pathSize = 6
	leafSize = pathSize + 8
)

// maxBaseline is the most fields of a baseline that a record names.
const maxBaseline = 20

// version of the form of a record.
const version = 1

// maxLeaves is as many leaves as [v1alpha1.MaxWishBytes] has room for: base64
// makes four bytes of three.
const maxLeaves = (v1alpha1.MaxWishBytes - 256) / 4 * 3 / leafSize

var (
	errVersion = errors.New("it has another version than 1")
	errLength  = errors.New("it is cut off")
)

// Record is what of a wish was let through: a hash of each leaf's path and value.
type Record struct {
	leaves map[path]uint64
	// baseline are the fields that count as wished all along, until that is reported.
	baseline []string
}

// Parse reads the record on an object; nil where there is none, or where it is
// of another kind.
func Parse(u *unstructured.Unstructured) (*Record, error) {
	text := resource.Annotation(u, v1alpha1.AnnotationWish)
	if text == "" {
		return nil, nil //nolint:nilnil // None, which is no error.
	}

	var w written
	if err := w.read(text); err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	if w.Version != version {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, errVersion)
	}

	if w.Kind != u.GetKind() || w.APIVersion != u.GetAPIVersion() || w.Leaves == "" && len(w.Withheld)+len(w.Repairs) > 0 {
		return nil, nil //nolint:nilnil // Of another kind, or in another version of it, or of what is held alone.
	}

	raw, err := base64.RawStdEncoding.DecodeString(w.Leaves)
	if err == nil && len(raw)%leafSize != 0 {
		err = errLength
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	r := newRecord(len(raw) / leafSize)
	r.baseline = w.Baseline

	for ; len(raw) > 0; raw = raw[leafSize:] {
		var p [8]byte

		copy(p[8-pathSize:], raw[:pathSize])
		r.put(path(binary.BigEndian.Uint64(p[:])), binary.BigEndian.Uint64(raw[pathSize:leafSize]))
	}

	return r, nil
}

// TextOf is the record on an object as it is written; false where there is anything in it besides what was wished.
func TextOf(u *unstructured.Unstructured) (string, bool) {
	text := resource.Annotation(u, v1alpha1.AnnotationWish)

	return text, strings.HasPrefix(text, "apiVersion: ") && strings.HasSuffix(text, "\nversion: 1\n") &&
		!strings.Contains(text, "baseline:") && !strings.Contains(text, named) && !strings.Contains(text, repaired)
}

func newRecord(leaves int) *Record { return &Record{leaves: make(map[path]uint64, leaves)} }

// size is how many leaves are recorded. A nil record has none.
func (r *Record) size() int {
	if r == nil {
		return 0
	}

	return len(r.leaves)
}

// put records a leaf. Of two leaves with one path's hash the record is of both.
func (r *Record) put(at path, value uint64) {
	if have, ok := r.leaves[at]; ok {
		r.leaves[at] = have ^ value

		return
	}

	r.leaves[at] = value
}

// get returns the recorded hash of a leaf's value. A nil record has none.
func (r *Record) get(at path) (uint64, bool) {
	if r == nil {
		return 0, false
	}

	v, ok := r.leaves[at]

	return v, ok
}

// keep takes a leaf from another record, if it is there, and not here.
func (r *Record) keep(at path, from *Record) {
	if _, ok := r.leaves[at]; ok {
		return
	}

	if v, ok := from.get(at); ok {
		r.leaves[at] = v
	}
}

// whole reports whether the record has all that was wished: what it does not have is
// new.
func (r *Record) whole() bool { return r != nil && len(r.leaves) < maxLeaves }

// Cut is how many leaves there is no room for.
func (r *Record) Cut() int { return max(0, len(r.leaves)-maxLeaves) }

// Format writes the record of an object of a kind. What there is no room for is
// left out.
func (r *Record) Format(apiVersion, kind string) (string, error) {
	kept := slices.Sorted(maps.Keys(r.leaves))
	kept = kept[:min(len(kept), maxLeaves)]
	raw := make([]byte, 0, len(kept)*leafSize)

	for _, at := range kept {
		var p [8]byte

		binary.BigEndian.PutUint64(p[:], uint64(at))
		raw = append(raw, p[8-pathSize:]...)
		raw = binary.BigEndian.AppendUint64(raw, r.leaves[at])
	}

	w := written{
		Version: version, APIVersion: apiVersion, Kind: kind, Leaves: base64.RawStdEncoding.EncodeToString(raw),
		Baseline: r.baseline[:min(len(r.baseline), maxBaseline)],
	}

	out, err := w.format()
	if err == nil && len(out) > v1alpha1.MaxWishBytes {
		w.Baseline = nil
		out, err = w.format()
	}

	if err != nil {
		return "", fmt.Errorf("cannot write the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return out, nil
}

func unstructuredOf(object map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object}
}
