// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch runs one controller for each kind that is governed, and stops it when
// the kind is not any more. It enqueues objects that nothing happened to, where a
// window or a policy has changed.
package watch
