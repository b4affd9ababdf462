// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leftover is about what is left when something went by accident: a
// managed resource whose composite is gone, or an external object whose managed
// resource is. It decides what is to be written down about these, and how one
// is given to another composite, or let go of for good.
package leftover
