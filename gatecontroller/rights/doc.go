// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights finds out what the manager may not do with the kinds that are
// governed. It asks the API server by access reviews, and writes nothing.
package rights
