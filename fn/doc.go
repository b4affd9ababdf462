// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fn is the composition function: it translates between a pipeline
// step's request and response and the engine's decisions. It runs as the last
// step, for it holds back what earlier steps may not change.
//
// Its files:
//   - function.go: one call, from the request to the response ([Function.RunFunction]); options; a panic as a fatal result
//   - input.go: the input of the pipeline step: defaults, and an error for an unknown field ([parseInput])
//   - state.go: the decoded request, and the decision about each composed resource ([state.decide])
//   - policies.go: policies, windows, Enforcements and namespace that Crossplane is to send, and those it sent ([state.require])
//   - params.go: the same for parameters of policies ([params.find])
//   - schema.go: the same for schemas, to find kinds without spec.managementPolicies ([state.requireSchemas])
//   - respond.go: desired state, readiness, conditions and events of the response ([state.respond], [state.report]); mode Fatal
//   - size.go: a fatal result, with the largest resources, for a response above the size that Crossplane reads ([state.fits])
//   - memo.go: the remembered answer for an XR at rest ([answers.again], [answers.remember])
//   - digest.go: the hash of a request, to recognize a request without a change
//   - decoded.go: a cache of decoded composed resources, for the rounds and runs of an XR
//   - value.go: conversion between protobuf and JSON objects; unchanged values are shared
//   - reports.go: the log of held and released changes, each once, and of Shadow mode ([reports.log])
//   - decisionlog.go: the decisions that go to the decision log, for kubectl kausality replay
//   - metrics.go: metrics, one count for each call ([metrics.observe])
package fn
