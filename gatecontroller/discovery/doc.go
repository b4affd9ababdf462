// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery finds kinds: those that the API server serves, and what they are by
// their CRDs (managed resources, composite resources, claims or others), and those that XRs
// refer to whose Composition runs the function. It reads discovery, CRDs, CompositionRevisions
// and XRs, and writes nothing but the condition of XRs for which the function does not run any more.
//
// Its files:
//   - kind.go: served kinds in their preferred version, with a subresource scale in any ([Resolver.Served]); by their CRD whether
//     managed resources ([Resolver.Describe])
//   - unlisted.go: kinds that API server discovery leaves out for a time; they remain governed ([Resolver.behind], [Unlisted])
//   - composed.go: kinds below XRs that run the function, and CompositionRevisions with it ([Kinds.Read], [Revisions])
//   - notrun.go: the condition of an XR whose Composition no longer runs the function ([Kinds.ReportNotRun])
//   - usage.go: kinds such as ProviderConfigUsage, by their schema
package discovery
