// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check has actionlint, which GitHub Actions' users lint workflows with, read the
// workflows that we show. It is a module of its own because actionlint brings dependencies that
// nothing else here needs.
package check
