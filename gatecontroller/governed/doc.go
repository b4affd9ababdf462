// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package governed reconciles one object of a governed kind: it has gates moved, and
// parents, owners and orphans released, each by its package. By itself it writes
// the annotations of parents that no request of anybody else would bring up to date.
package governed
