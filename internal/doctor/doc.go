// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out from the objects of a cluster whether Kausality is
// installed and at work as it should be, and says of what is wrong why it matters
// and what helps. It is as pure as the engine; only kubectl kausality uses it.
package doctor
