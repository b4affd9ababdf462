// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// EventReason is the reason of an event that Kausality records, or that Crossplane
// records for its function. docs/reference/events.md is generated from these: of each
// the type, what it is recorded on, and what it means.
type EventReason string

// Reasons of events.
const (
	// EventReasonHeld is a Warning event on: the object, its parent, XR, Claim. Changes
	// were held back: fields, values, what is missing.
	EventReasonHeld EventReason = "KausalityHeld"
	// EventReasonDenied is a Warning event on: the object, its parent. A request was
	// refused, and why, of each field.
	EventReasonDenied EventReason = "KausalityDenied"
	// EventReasonInput is a Warning event on: XR. The function's input, a policy or a
	// window could not be used.
	EventReasonInput EventReason = "KausalityInput"
	// EventReasonBaseline is a Normal event on: XR. In the function's first run: fields
	// that differ from what is stored and count as asked for.
	EventReasonBaseline EventReason = "KausalityBaseline"
	// EventReasonLeft is a Normal event on: XR. A field is left to others, such as
	// replicas to an autoscaler.
	EventReasonLeft EventReason = "KausalityLeft"
	// EventReasonRepaired is a Normal event on: XR. What somebody changed or deleted by hand is put
	// back as its Composition has it.
	EventReasonRepaired EventReason = "KausalityRepaired"
	// EventReasonNotSettled is a Warning event on: XR. It has been ready for
	// --initializing-limit and counts as settled: what did not settle.
	EventReasonNotSettled EventReason = "KausalityNotSettled"
	// EventReasonGateOpen is a Normal event on: managed resource. Its gate was opened:
	// the actions, and who asked for it.
	EventReasonGateOpen EventReason = "KausalityGateOpen"
	// EventReasonGateClosed is a Normal event on: managed resource. Its gate was closed,
	// and why.
	EventReasonGateClosed EventReason = "KausalityGateClosed"
	// EventReasonGateOverdue is a Warning event on: managed resource. Its gate is open
	// for longer than its policy, or --max-open, says.
	EventReasonGateOverdue EventReason = "KausalityGateOverdue"
	// EventReasonCloseWhen is a Warning event on: managed resource. The closeWhen
	// expression of a policy failed.
	EventReasonCloseWhen EventReason = "KausalityCloseWhen"
	// EventReasonShared is a Warning event on: managed resource. Another one stands for
	// the same external object, and the gate opens neither for Delete nor for a window.
	EventReasonShared EventReason = "KausalityShared"
	// EventReasonAnnotation is a Warning event on: managed resource. An annotation of
	// ours does not parse.
	EventReasonAnnotation EventReason = "KausalityAnnotation"
	// EventReasonUngated is a Warning event on: managed resource. It has no gate: its
	// provider has no management policies, or the function is in Audit.
	EventReasonUngated EventReason = "KausalityUngated"
	// EventReasonDrift is a Warning event on: managed resource. Somebody has changed its external
	// object outside of Crossplane since the gate closed.
	EventReasonDrift EventReason = "KausalityDrift"
	// EventReasonManagedResourceOrphaned is a Warning event on: managed resource, XR. It
	// stays, for deleting it is not allowed, and its owner is gone.
	EventReasonManagedResourceOrphaned EventReason = "KausalityManagedResourceOrphaned"
	// EventReasonExternalResourceOrphaned is a Warning event on: the managed resource,
	// its record. It is gone, its external object stays, on record.
	EventReasonExternalResourceOrphaned EventReason = "KausalityExternalResourceOrphaned"
	// EventReasonForgotten is a Warning event on: XR, managed resource. The XR does not
	// refer to it any more, and is made of it: what to do.
	EventReasonForgotten EventReason = "KausalityForgotten"
	// EventReasonExceptionEnds is a Warning event on: Enforcement. An exception ends
	// within a day, or has ended.
	EventReasonExceptionEnds EventReason = "KausalityExceptionEnds"
	// EventReasonWindowStarted is a Normal event on: UpgradeAllowance. It became active
	// for the first time.
	EventReasonWindowStarted EventReason = "KausalityWindowStarted"
	// EventReasonWindowEnded is a Normal event on: UpgradeAllowance. It has ended.
	EventReasonWindowEnded EventReason = "KausalityWindowEnded"
	// EventReasonWindowPaused is a Warning event on: UpgradeAllowance. What activateWhen
	// asks for is not so any more; or, of type Normal, spec.suspend was set.
	EventReasonWindowPaused EventReason = "KausalityWindowPaused"
	// EventReasonWindowResumed is a Normal event on: UpgradeAllowance. It is active
	// again.
	EventReasonWindowResumed EventReason = "KausalityWindowResumed"
	// EventReasonApproved is a Normal event on: the object's parent, Claim, XR. A change
	// that is held was approved: of what, by whom, and why.
	EventReasonApproved EventReason = "KausalityApproved"
	// EventReasonBreakGlass is a Warning event on: the object's parent, Claim, XR. Somebody
	// has let a change through alone: of what, who, and why.
	EventReasonBreakGlass EventReason = "KausalityBreakGlass"
	// EventReasonApprovalUsed is a Normal event on: the object's parent, Claim, XR. A change
	// that was approved was made.
	EventReasonApprovalUsed EventReason = "KausalityApprovalUsed"
)
