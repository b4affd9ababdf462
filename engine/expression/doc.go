// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles CEL expressions and evaluates them within a budget: those of
// policies, bindings and Enforcements. It has Kubernetes' libraries and limits, what
// expressions are evaluated with (Input, variables, parameters), and what an expression reads.
//
// Its files:
//   - expression.go: CEL environments ([NewEnv]), has() of map keys, variables such as object and parent ([Input]), evaluation
//   - variable.go: spec.match.variables: compilation ([CompileScope]), evaluation at first use
//   - params.go: the query for a policy's parameter objects, once for each decision ([ParamQuery], [Params])
//   - budget.go: cost limit for the expressions of a policy, and for all bindings of a request ([Budget])
//   - reading.go: use of the parent, the authorizer, or facts known only at the start of a chain ([ReadingOf])
//   - role.go: result type of conditions, messages and variables ([Role])
//   - failure.go: error of an evaluation, with the policy or Enforcement ([EvaluationError])
package expression
