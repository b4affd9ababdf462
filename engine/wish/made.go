// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Made are digests of what was last let through of composed resources, by hashes of their names.
type Made map[uint32]uint64

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

// madeSize is how many bytes one takes.
const madeSize = 4 + 8

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
