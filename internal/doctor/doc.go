// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out from the objects of a cluster whether Kausality is
// installed and at work as it should be, and says of what is wrong why it matters
// and what helps. It is as pure as the engine; only kubectl kausality uses it.
//
// Its files:
//   - doctor.go: all checks, in order, with the lists that each needs ([Diagnose]); their input ([State])
//   - source.go: the resources to list ([Sources]); helpers for unstructured objects
//   - manager.go: where the manager runs, by its own record or a Service ([FindManager])
//   - deployment.go: the same by its Deployment: flags, version, mounted Secret ([ManagerContainer])
//   - install.go: our CRDs, webhook configurations, guards and Function
//   - hook.go: webhooks to try by a dry run ([Asks]) and their answers ([Probe]); also the guards of approvals
//   - lease.go: whether a manager is at work, and a leader
//   - right.go: rights of the manager ([Needs]); also the XRs to list, with and without the function ([Composites])
//   - certificate.go: end of CA and serving certificate, and whether they match
//   - composition.go: the function as last step of Compositions; also the version of Crossplane
//   - kind.go: gated kinds ([Gated]), and kinds without spec.managementPolicies
//   - status.go: policies, bindings, Enforcements and windows that are not in force; also providers
//   - waiting.go: changes held for more than a day; also held changes of XRs whose Composition no longer runs the function
//   - gate.go: overdue gates and unreadable records; also managed resources without owner, and recorded external objects
package doctor
