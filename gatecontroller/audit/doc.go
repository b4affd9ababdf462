// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit has what logs and metrics report of decisions: by which policies,
// windows and Enforcements they were made, and which expressions failed.
package audit
