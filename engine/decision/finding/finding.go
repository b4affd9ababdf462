// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finding is what is found of a change: whether it is allowed, by which rule and from which cause, or what it lacks.
package finding

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Finding is what is decided about one change, and why.
type Finding struct {
	// Change that is judged.
	Change change.Change
	// Verdict on it.
	Verdict Verdict
	// Rule that allowed it; empty otherwise.
	Rule Rule
	// Policy or UpgradeAllowance that allowed it, or ENFORCEMENT/EXCEPTION,
	// where one did.
	Policy string
	// Generation of it, or of the Enforcement; zero where that is not known.
	Generation int64
	// Approval is the UID of the ChangeApproval that allowed it, and Digest what that is for;
	// empty where none did.
	Approval, Digest string
	// Lacks say what it would take, nearest policy first; none when Allowed.
	Lacks []Lack

	Cause Cause
	// Digested is what the digest of an unallowed change stands for; nil where it has none. Replaced is true where the
	// change has a managed resource stand for another external object.
	Digested func() digest.Change
	Replaced bool
	// Between are the objects that the change is between.
	Between []map[string]any
	// Alone is true of a change that is held because it is allowed without External Update.
	Alone bool
	// Repeated is true of a change that the request makes once more.
	Repeated bool
	// Since is since when an unallowed change is held, and stored are the fields of the parent that somebody has changed who may
	// not; empty where it is not held.
	Since  allowance.Since
	Stored []string
}

// Lack is one thing that prevents a change from being allowed.
type Lack struct {
	// Policy that would allow it; empty where there is none.
	Policy string
	// Generation of the policy; zero where it is not known, as of one that is gone.
	Generation int64
	// What is lacking of it, or altogether.
	What policy.LackKind
	// Text says it for a person, in one clause, and Fix what to do about it; empty for nothing.
	Text, Fix string
	// Short is Text in fewer words, for a condition; empty where there are none.
	Short string
	// Approvals are how many people have to approve what follows; zero where that is not what
	// is lacking.
	Approvals int32
}

// String is the text and the fix.
func (l Lack) String() string {
	if l.Fix == "" {
		return l.Text
	}

	return l.Text + ": " + l.Fix
}

// Missing says why the change is not allowed, and what to do about it, for a person; empty
// when it is allowed.
func (f Finding) Missing() string {
	texts := make([]string, len(f.Lacks))
	for i, l := range f.Lacks {
		texts[i] = l.String()
	}

	return strings.Join(texts, "; ")
}

// Why are the reasons alone, without what to do about them: first those of an UpgradeAllowance, which would allow it but for them.
func (f Finding) Why() []string {
	return f.reasons(func(l Lack) string { return l.Text })
}

// Briefly are the reasons in fewer words.
func (f Finding) Briefly() []string {
	return f.reasons(func(l Lack) string { return cmp.Or(l.Short, l.Text) })
}

// OfEdit reports whether the first reason is an edit that the change comes from.
func (f Finding) OfEdit() bool {
	return len(f.Lacks) > 0 && f.Lacks[0].What == policy.LackEdited && f.Lacks[0].Policy == "" &&
		!slices.ContainsFunc(f.Lacks, func(l Lack) bool { return l.What == policy.LackWindow })
}

func (f Finding) reasons(text func(Lack) string) []string {
	var first, rest []string

	for _, l := range f.Lacks {
		if l.What == policy.LackWindow {
			first = append(first, text(l))
		} else {
			rest = append(rest, text(l))
		}
	}

	return append(first, rest...)
}

// Initiator is who started the chain that allowed the change; empty where
// nothing did.
func (f Finding) Initiator() string { return f.Cause.Initiator }

// Trace is the path that allowed the change, from the initiator's to the
// parent's; not to be modified.
func (f Finding) Trace() []v1alpha1.Hop { return f.Cause.Trace }

// Cause is the path that leads to an allowed change.
type Cause struct {
	Initiator string
	Trace     []v1alpha1.Hop
	// External are the verbs that ride along to the system behind a managed
	// resource.
	External []v1alpha1.Allowance
	// Propagated is true when a parent's allowance led here.
	Propagated bool
	// By is the parent's allowance that the change uses; nil for none.
	By *v1alpha1.Allowance
	// Exception that excused the change, with its reason.
	Exception string
}

// Verdict is what is decided about one change.
type Verdict string

// Verdicts.
const (
	// Allowed is a change that was asked for.
	Allowed Verdict = "Allowed"
	// Unallowed is one that is not allowed.
	Unallowed Verdict = "Unallowed"
	// Ungoverned is a change of a root that no policy is about.
	Ungoverned Verdict = "Ungoverned"
)

// Rule is why a change is allowed.
type Rule string

// Rules, in the order they are tried.
const (
	// RuleAllowance is an unconsumed allowance of the parent.
	RuleAllowance Rule = "Allowance"
	// RuleApproval is a ChangeApproval of an edit that is stored already.
	RuleApproval Rule = "Approval"
	// RuleUpgrade is an active UpgradeAllowance.
	RuleUpgrade Rule = "UpgradeAllowance"
	// RuleInitiate is a policy whose mayInitiate subject is the user.
	RuleInitiate Rule = "Initiate"
	// RuleInitializing is a parent that was never ready.
	RuleInitializing Rule = "Initializing"
	// RuleDeleting is a parent that is being deleted or gone.
	RuleDeleting Rule = "Deleting"
	// RuleException is an exception of each Enforcement that governs the
	// object.
	RuleException Rule = "Exception"
	// RuleLeftBehind is a person who releases what a parent that is gone left
	// behind, or gives it to another parent.
	RuleLeftBehind Rule = "LeftBehind"
	// RuleRepair is a pipeline that desires what it did before somebody changed
	// or deleted it by hand.
	RuleRepair Rule = "Repair"
)

// Approvable is what a held change is approved by.
type Approvable struct {
	// Digest of it; empty where it cannot be approved.
	Digest string
	// Masked is true where the value is hidden, and no part of the digest.
	Masked bool
	// Follows are the external actions that follow.
	Follows []string
	// Place is a hash of the keys of the elements that the change is in; empty where it is in none.
	Place string
}

// Approvable returns what the change is approved by.
func (f Finding) Approvable() Approvable {
	if f.Digested == nil {
		return Approvable{}
	}

	d := f.Digested()

	return Approvable{Digest: digest.Of(d), Masked: d.Masked, Follows: d.Follows, Place: placeOf(d)}
}

// placeOf is a hash of where a change of a list's element is.
func placeOf(d digest.Change) string {
	if !slices.ContainsFunc(d.Elements, func(e any) bool { _, isField := e.(string); return !isField }) {
		return ""
	}

	raw, _ := json.Marshal(d.Elements) //nolint:errchkjson // It is decoded JSON.
	sum := sha256.Sum256(raw)

	return hex.EncodeToString(sum[:4])
}

// Approvals is how many people have to approve what follows from an unallowed change, by the
// policies that let its user initiate it but for that; zero where none does.
func (f Finding) Approvals() int32 {
	var out int32
	for _, l := range f.Lacks {
		out = max(out, l.Approvals)
	}

	return out
}

// Bars reports whether a change is held though there is an allowance for it: since before the change of the parent that gave
// that, or because that lets out nothing.
func (f Finding) Bars(a v1alpha1.Allowance) bool {
	return f.Alone || f.Since.At != "" && !f.Since.Serves(a, f.Stored)
}

// HeldAt is the ID of the last change of the parent when what it is of was first held; empty where it is not.
func (f Finding) HeldAt() string { return f.Since.At }

// MaxRefused limits the changes a refusal names; the rest is a count.
const MaxRefused = 10

// MaxFields is how much is said of the fields that a policy names, in bytes.
const MaxFields = 200
