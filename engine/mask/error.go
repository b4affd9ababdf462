// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"errors"
	"strings"
)

// errMasked stands for an error that may quote what is hidden.
var errMasked = errors.New("the reason is not shown, for it may quote a credential")

// Error returns what may be shown of an expression's error about objects. It may
// quote any of their values, whole, in part or decoded: where they hold a
// credential, only errors that quote none by their nature are shown.
func Error(err error, objects ...map[string]any) error {
	for _, start := range [...]string{
		"no such ", "division by ", "modulus by ", "index out of ", "operation cancelled", "operation interrupted",
	} {
		if strings.HasPrefix(err.Error(), start) {
			return err
		}
	}

	for _, object := range objects {
		if hides(object, shown) {
			return errMasked
		}
	}

	return err
}
