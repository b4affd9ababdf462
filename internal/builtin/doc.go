// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the kinds of Kubernetes itself and their schemas, without asking an
// API server: they follow from the Go types that the API server's own follow from.
package builtin
