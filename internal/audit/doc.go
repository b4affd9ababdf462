// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit finds out from the objects of a cluster what is not as somebody asked
// for it, what can change without anybody having asked, and what waits for somebody.
// It is as pure as the engine; kubectl kausality audit, the reports that the manager
// keeps, and the doctor judge by it.
//
// Its files:
//   - sweep.go: all objects, one after another, and the findings at the end ([Sweep.Object], [Sweep.Findings]);
//     owners that caches may not know yet
//   - finding.go: rules, with severity and category of each; order and identity of findings ([Finding])
//   - stored.go: values that somebody without permission stored ([Edited]); unreadable records ([Misread])
//   - held.go: changes held by the webhook ([HeldOf]) or by the function ([Waiting]), and those of mode Audit; both together
//   - gate.go: open, overdue and removed gates; drift of the external object ([Gate])
//   - orphan.go: managed resources without owner ([Left]), and recorded external objects ([Recorded])
//   - kind.go: kinds without a policy, or without an Enforcement that refuses or holds; XRs without the function
//   - config.go: policies, bindings, windows and Enforcements: not ready, Shadow mode, only warnings, exceptions, open windows ([Unready])
package audit
