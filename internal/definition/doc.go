// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition knows kinds and their schemas by what defines them: CRDs, Crossplane's
// XRDs, and Kubernetes itself.
package definition
