// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pending makes of what is held below one object that people edit the status of its
// PendingChange. Equal inputs give equal bytes, in whatever order objects were read.
package pending
