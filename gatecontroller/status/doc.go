// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports whether policies and Enforcements are in force: it writes the
// status of each by its name, once the configuration has applied its generation, checks
// their expressions against the schemas of the kinds they name, and warns of exceptions
// that end.
package status
