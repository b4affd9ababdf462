// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judging puts requests of the manager's own to the engine, with all that the
// webhook decides by. It has what logs and metrics report of decisions: by which policies,
// windows and Enforcements they were made, and which expressions failed.
package judging
