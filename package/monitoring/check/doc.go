// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check tests the Prometheus rules and the Grafana dashboard beside it
// with Prometheus' own parser and engine, and with Grafana's own model. It is a
// module of its own, so that the dependencies of these do not meet ours.
package check
