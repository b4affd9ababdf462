// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package orphan is about what is left when something was deleted by accident: a
// managed resource whose composite is gone, or an external object whose managed
// resource is. It decides what is recorded of these, and how one is given to another
// composite, or released for good.
package orphan
