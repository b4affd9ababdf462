// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status reports whether policies, bindings and Enforcements are in force: it writes the
// status of each by its name, once the configuration has applied its generation, checks
// their expressions against the schemas of the kinds they name, and warns of exceptions
// that end. Rights finds out by access reviews what the manager may not do with these kinds.
// Labels maintain the labels by which functions ask for policies and windows.
//
// Its files:
//   - status.go: what is in force now, and the queue of statuses to write ([Reporter.Set]); the text of a long condition
//   - policy.go: Ready of an AllowancePolicy ([Policies])
//   - parameter.go: ParametersReadable: may the manager and Crossplane read the parameters of a policy ([Parameters])
//   - ungatedstatus.go: Gated of a policy: kinds without management policies
//   - binding.go: Ready of an AllowanceBinding, and the warning for one older than its guard ([Bindings])
//   - enforcement.go: Ready of an Enforcement, and its kinds with unusual resource names ([Enforcements])
//   - typecheck.go: schemas from the API server, and checks of policies and Enforcements by them ([Schemas])
//   - windowcheck.go: the same check of an UpgradeAllowance; its status is in package windows
//   - rights.go: missing rights of the manager: log, metric and reason RightsMissing ([Rights])
//   - exception.go: exceptions of Enforcements that end soon: event and metrics ([Exceptions])
//   - notready.go: metrics of policies, bindings, windows and Enforcements by readiness
//   - label.go: labels of AllowancePolicies and UpgradeAllowances, by which functions select them ([Labels])
package status
