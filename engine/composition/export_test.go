// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

// Unchanged is the update of a wish that is unchanged; false where it may not be so.
func Unchanged(r Request) (Result, bool) { return composedOf(&r).unchanged(askerOf(&r), r.Room) }

// Compared is the update of any wish.
func Compared(r Request) Result { return composedOf(&r).compared(askerOf(&r), r.Baseline, r.Room) }
