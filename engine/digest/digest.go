// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Prefix of each digest.
const Prefix = "sha256:"

// Operations.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// Change is what a digest stands for.
type Change struct {
	// Kind of the object. The version of its API is no part of it.
	Kind schema.GroupKind
	// UID of the object; of one that is to be created that of its parent.
	UID types.UID
	// Name that an object which is to be created has in its Composition, or by itself.
	Name string
	// Operation is create, update or delete.
	Operation string
	// Elements of the path, as change.Locator.Elements gives them; none of a whole object.
	Elements []any
	// From and To are the values; nil for none. What is hidden of them is not in them: it could
	// be guessed.
	From, To any
	// Masked is true where anything is hidden.
	Masked bool
	// Follows are the external actions that follow.
	Follows []string
}

// document is what is hashed, in its canonical form.
type document struct {
	Group     string   `json:"group"`
	Kind      string   `json:"kind"`
	UID       string   `json:"uid"`
	Name      string   `json:"name,omitempty"`
	Operation string   `json:"operation"`
	Path      []any    `json:"path,omitempty"`
	From      any      `json:"from,omitempty"`
	To        any      `json:"to,omitempty"`
	Masked    bool     `json:"masked,omitempty"`
	Follows   []string `json:"follows,omitempty"`
}

// WellFormed reports whether a text looks like a digest, whatever of.
func WellFormed(text string) bool {
	sum, ok := strings.CutPrefix(text, Prefix)
	raw, err := hex.DecodeString(sum)

	return ok && err == nil && len(raw) == sha256.Size && sum == strings.ToLower(sum)
}

// Of is the digest of a change: sha256: and the hexadecimal SHA-256 of its canonical JSON (RFC
// 8785). Empty where a value cannot be written as JSON: nobody can approve that.
func Of(c Change) string {
	d := document{
		Group: c.Kind.Group, Kind: c.Kind.Kind, UID: string(c.UID), Name: c.Name, Operation: c.Operation,
		Path: make([]any, len(c.Elements)), Masked: c.Masked, Follows: slices.Sorted(slices.Values(c.Follows)),
		From: exact(c.From), To: exact(c.To),
	}

	for i, e := range c.Elements {
		d.Path[i] = exact(e)
	}

	raw, err := json.Marshal(d)
	if err != nil {
		return ""
	}

	return ofJSON(raw)
}

// OfList is the digest of several, in order: of the list that somebody has seen.
func OfList(digests []string) string {
	raw, err := json.Marshal(digests)
	if err != nil {
		return ""
	}

	return ofJSON(raw)
}

// OfLists stands for two versions of a list.
func OfLists(was, is []any) string {
	raw, err := json.Marshal([]any{exact(was), exact(is)})
	if err != nil {
		return ""
	}

	return ofJSON(raw)
}

func ofJSON(raw []byte) string {
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return ""
	}

	sum := sha256.Sum256(canonical)

	return Prefix + hex.EncodeToString(sum[:])
}

// maxExact is the greatest integer of which a canonical number says each digit.
const maxExact = 1 << 53

// exact is a value of which canonical JSON says everything: its numbers are those of IEEE 754,
// and an integer beyond these is written as text, which is marked.
func exact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = exact(e)
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = exact(e)
		}

		return out
	case int64:
		if v > maxExact || v < -maxExact {
			return map[string]any{"int64": strconv.FormatInt(v, 10)}
		}

		return v
	default:
		return v
	}
}
