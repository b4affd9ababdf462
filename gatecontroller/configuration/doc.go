// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration reconciles what follows from all policies, windows and
// Enforcements together: which kinds are watched and gated, and by which guards and
// webhook configurations. What that is, is planned from what was read, by planFor;
// each part of the plan is then a request of its own, which fails and is retried by
// itself. Applier writes guards and webhook configurations, and DefinitionOwner has our
// CRDs outlive the package that brought them.
package configuration
