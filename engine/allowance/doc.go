// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allowance reads, writes and applies the annotations in which objects
// carry what may follow from their state and why they are as they are.
//
// Values are written as YAML with a fixed key order, so that equal values are
// equal bytes, and read as YAML or JSON.
package allowance
