// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint finds what is wrong with policies, bindings, windows and Enforcements before
// they are applied: what admission refuses, what their statuses would say, and what they
// do not do together. It knows only what it is given: other objects may be in the cluster.
package lint
