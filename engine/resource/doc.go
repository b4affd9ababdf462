// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource reads what decisions need from Kubernetes objects of any
// kind: who their parent is, how far their controller has come, and whether
// they are Crossplane's claims, composite or managed resources. It takes
// objects as decoded JSON, with numbers as int64 (from the API server) or
// float64 (from a composition function's request).
package resource
