// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller has the controllers of the namespaced kinds. All else in it is generated: without this file go mod
// tidy would find no such package.
package controller
