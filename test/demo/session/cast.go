// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"strings"
)

// height of the terminal of a cast, in rows.
const height = 40

// Cast writes blocks with the times they were told at, in version 2 of the format
// of asciinema: a header and then one event in each line.
func Cast(title string, blocks []Block) (string, error) {
	var out strings.Builder

	enc := json.NewEncoder(&out)
	if err := enc.Encode(map[string]any{"version": 2, "width": width, "height": height, "title": title}); err != nil {
		return "", fmt.Errorf("cannot write the head of a cast: %w", err)
	}

	for _, b := range blocks {
		text := strings.ReplaceAll(painter(ansi).rows(rows(b, 0)), "\n", "\r\n")
		if err := enc.Encode([]any{b.At.Seconds(), "o", text}); err != nil {
			return "", fmt.Errorf("cannot write a cast: %w", err)
		}
	}

	return out.String(), nil
}
