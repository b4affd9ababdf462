// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin tests kubectl kausality on a stack of its own, of which its
// tests break one part after another.
package plugin
