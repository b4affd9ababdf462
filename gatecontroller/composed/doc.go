// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package composed finds the kinds that XRs refer to whose Composition runs the
// function. It reads CompositionRevisions and XRs from the cache, and writes the
// condition of XRs for which the function does not run any more.
package composed
