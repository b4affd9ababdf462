// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fn is the composition function: it translates between a pipeline
// step's request and response and the engine's decisions. It runs as the last
// step, for it holds back what earlier steps may not change.
package fn
