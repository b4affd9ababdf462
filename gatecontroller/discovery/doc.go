// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery finds the kinds that the API server serves, and what they are by
// their CRDs: managed resources, composite resources, claims or others. It reads
// discovery and CRDs, and writes nothing.
package discovery
