// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads objects from YAML and JSON, as kubectl does, and knows at which
// line and column each of their fields is.
package manifest
