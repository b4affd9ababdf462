// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery finds kinds: those that the API server serves, and what they are by
// their CRDs (managed resources, composite resources, claims or others), and those that XRs
// refer to whose Composition runs the function. It reads discovery, CRDs, CompositionRevisions
// and XRs, and writes nothing but the condition of XRs for which the function does not run any more.
package discovery
