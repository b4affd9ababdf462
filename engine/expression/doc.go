// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles CEL expressions and evaluates them within a budget: those of
// policies, bindings, windows and Enforcements. It has Kubernetes' libraries and limits, what
// expressions are evaluated with (Input, variables, parameters), and what an expression reads.
package expression
