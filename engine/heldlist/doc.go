// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heldlist reads and writes the list of held changes that a composition function hands
// to Kausality's manager: the message of an XR's condition.
package heldlist
