// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kind has the kinds that the API server serves, as plain values, and the
// names by which policies and windows refer to them. It finds none by itself.
package kind
