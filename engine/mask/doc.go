// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mask hides values that only the readers of an object may see, in all
// that is said about the object elsewhere: conditions, events, records, traces,
// logs, warnings and refusals.
package mask
