// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package customresource validates custom resources by their CRDs, as the API server does
// before any webhook is asked.
package customresource
