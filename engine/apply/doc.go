// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply foresees what a server-side apply of a partial object will
// make of a live one: which fields it sets, which it removes because their
// owner stops mentioning them, and which it leaves to others.
package apply
