// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxName is how long names are at most: a label's value may be no longer.
	maxName = 63
	// hashed is how many hexadecimal digits of a hash end a name.
	hashed = 8
)

// Name of the PendingChange of an object: its kind and name in lower case, cut, and a hash of
// both and of the group. It is a DNS label.
func Name(gk schema.GroupKind, name string) string {
	sum := sha256.Sum256([]byte(gk.Group + "\x00" + gk.Kind + "\x00" + name))

	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}

		return '-'
	}, strings.ToLower(gk.Kind+"-"+name))

	plain = strings.Trim(plain[:min(len(plain), maxName-hashed-1)], "-")

	return strings.TrimPrefix(plain+"-"+hex.EncodeToString(sum[:hashed/2]), "-")
}

// Namespace of the PendingChange of an object: that of the object, or our own for one that is in
// none.
func Namespace(root *unstructured.Unstructured, own string) string {
	if ns := root.GetNamespace(); ns != "" {
		return ns
	}

	return own
}
