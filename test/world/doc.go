// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world is the control plane of a running stack, as tests see it: clients
// of those who take part, waiting for what follows from what they do, watching
// every version of an object, reading metrics, and the numbers of the environment
// that have a random test play the same again. In a World there is nothing but the
// API server and Kausality; the test plays Crossplane and the provider.
//
// What more than one package of tests needs is here. What the demo plays, too, is in
// package scenario, and how long all of them wait in package patience; neither
// imports this one.
package world
