// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision answers the one question all of Kausality asks: may this
// change of this object be made, because of what, and what may follow from it.
//
// [Decide] is a pure function: the same request gives the same decision, to
// the byte, wherever it is asked.
package decision
