// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judging puts requests that the manager makes by itself to the engine, with all that the
// webhook decides by.
package judging
