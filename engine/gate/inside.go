// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// Inside is a field of a managed resource whose value is stored and has not reached
// the external object: nobody asked for it, or it is allowed for the managed
// resource alone.
type Inside struct {
	// Path of the field.
	Path change.Path
	// Stored is its value, and Asked the one that was asked for of the external
	// object; nil for none.
	Stored, Asked any
	// User who stored it, or who asked for that.
	User string
}

// Insides are those of a managed resource, in order.
func Insides(u *unstructured.Unstructured) ([]Inside, error) {
	rec, err := ParseAsked(u)
	if rec == nil || err != nil {
		return nil, err
	}

	asked, err := AskedFor(u, rec)
	if err != nil {
		return nil, err
	}

	paths := Away(rec)
	out := make([]Inside, len(paths))

	for i, path := range paths {
		out[i] = Inside{Path: path, Stored: at(u, path), Asked: at(asked, path), User: cmp.Or(rec.Users[path.String()], rec.User)}
	}

	return out, nil
}

// at is the value of a field; nil where there is none.
func at(u *unstructured.Unstructured, path change.Path) any {
	v, _ := fieldpath.Pave(u.Object).GetValue(path.String())

	return v
}
