// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports whether policies and Enforcements are in force: it writes
// their status and labels, checks their expressions against the schemas of the kinds
// they name, and warns of exceptions that end.
package status
