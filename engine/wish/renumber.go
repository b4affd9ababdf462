// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"encoding/base64"
	"encoding/binary"
)

// Renumber returns records, as annotations have them, with a number in the place of each
// hash of a value: the same hash has the same number in all of them. What compares them
// with each other finds the same, and nobody finds out by trying what the values are. A
// text that is no record stays as it is.
func Renumber(texts ...string) []string {
	numbers, out := map[uint64]uint64{}, make([]string, len(texts))

	for i, text := range texts {
		var w written

		out[i] = text
		if text == "" || w.read(text) != nil || w.Version != version {
			continue
		}

		raw, err := base64.RawStdEncoding.DecodeString(w.Leaves)
		if err != nil || len(raw)%leafSize != 0 {
			continue
		}

		for leaf := raw; len(leaf) > 0; leaf = leaf[leafSize:] {
			hash := binary.BigEndian.Uint64(leaf[pathSize:leafSize])
			if _, ok := numbers[hash]; !ok {
				numbers[hash] = uint64(len(numbers)) + 1
			}

			binary.BigEndian.PutUint64(leaf[pathSize:leafSize], numbers[hash])
		}

		w.Leaves = base64.RawStdEncoding.EncodeToString(raw)
		if renumbered, err := w.format(); err == nil {
			out[i] = renumbered
		}
	}

	return out
}
