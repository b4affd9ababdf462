// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario plays the main job on a running stack: a person changes a
// Claim, and the change reaches the external object, or is held. The
// end-to-end test and the demo play the same steps.
package scenario
