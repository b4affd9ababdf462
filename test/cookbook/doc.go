// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cookbook plays the recipes of docs/cookbook.md. Each has a play: the scenarios in
// testdata/ANCHOR, where ANCHOR is what its heading is linked by, in the format of kubectl kausality test.
// What they call recipe is the YAML block itself, as it is on the page.
//
// Scenarios are decided by the engine, in milliseconds, and then on a stack: the recipe is applied there,
// and those who ask, or ask in vain, do so as themselves. What the engine allows the API server has to
// accept, with the same allowances; what it refuses it has to refuse, with the same message.
package cookbook
