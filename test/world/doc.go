// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world is the control plane of a running stack, as tests see it: clients
// of those who take part, and waiting for what follows from what they do. In a
// World there is nothing but the API server and Kausality; the test plays
// Crossplane and the provider.
package world
