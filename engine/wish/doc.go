// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wish reports what of a desired object is a new wish. What is stored
// often reads otherwise than what was asked for: defaults, pruning, other
// webhooks. So a desired object is compared with a record of the last one that
// was let through, and with what is stored only where that does not say.
package wish
