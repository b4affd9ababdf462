// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message keeps texts for people short: conditions, events and warnings.
package message
