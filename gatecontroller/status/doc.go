// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports whether policies and Enforcements are in force: it writes the
// status of each by its name, once the configuration has applied its generation, checks
// their expressions against the schemas of the kinds they name, and warns of exceptions
// that end. Rights finds out by access reviews what the manager may not do with these kinds.
// Labels maintain the labels by which functions ask for policies and windows.
package status
