// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Operation is what is done to an object, as in an AdmissionReview.
type Operation string

// Operations.
const (
	// OperationCreate makes an object.
	OperationCreate Operation = "CREATE"
	// OperationUpdate changes one.
	OperationUpdate Operation = "UPDATE"
	// OperationDelete deletes one.
	OperationDelete Operation = "DELETE"
)

// Settings name the parties that are treated specially.
type Settings struct {
	// Crossplane is the user name under which Crossplane works. Providers are
	// the other service accounts of its namespace.
	Crossplane string
	// Manager is the user name of Kausality's manager.
	Manager string
	// Gates is true where the manager moves gates: the parents of what has one are to wait for it before they go.
	Gates bool
	// WithoutLateInitialize are kinds of managed resources whose provider's
	// runtime does not support every set with LateInitialize.
	WithoutLateInitialize gate.Kinds
	// Identity is what decides in this installation which external object a managed resource stands for.
	Identity identity.Fields
}

// Basis is what requests are decided by, whoever puts them: a composition function, a
// webhook, a controller or a command. See engine/inforce, which makes it.
type Basis struct {
	// Policies in force.
	Policies *policy.Set
	// Bindings in force; none where no chain starts.
	Bindings *policy.Bindings
	// Upgrades are the UpgradeAllowances there are, active or not.
	Upgrades []*allowance.Window
	// Enforcements in force.
	Enforcements []*enforcement.Enforcement
	// Params finds the objects that hold the parameters of policies; nil where nobody can.
	Params policy.Params
	// Settings of the installation.
	Settings Settings
	// Now is the time to judge windows by.
	Now time.Time
}

// Request is one change of one object.
type Request struct {
	// Basis that it is decided by.
	Basis

	// Operation that is asked for.
	Operation Operation
	// Old is the object as it is; nil on create.
	Old *unstructured.Unstructured
	// New is the object as asked for; nil on delete.
	New *unstructured.Unstructured
	// User who asks.
	User policy.User
	// Parent is what is there under the reference that resource.ParentIn
	// returns. Nil for a root, and where there is nothing.
	Parent *unstructured.Unstructured
	// ParentGone is true when the object had a parent that is not there. It is
	// found out of the reference too: where nothing is there, or another object
	// of the same name.
	ParentGone bool
	// ParentSettles is true when a composition function reports on the parent,
	// as of its first run: its allowances serve until that reports the parent
	// settled, whatever else its conditions say.
	ParentSettles bool
	// Namespace of the object; nil for cluster-scoped ones.
	Namespace *unstructured.Unstructured
	// Resource of the object, for Enforcements name resources and not kinds.
	Resource schema.GroupResource
	// Versions in which it is served, where Enforcements ask for that; nil where it is
	// not known.
	Versions []string
	// Action to take on unallowed changes. Empty means the strictest of what
	// the Enforcements that govern the object say, and of Hold for an XR that
	// is bound to a Claim; without either, none.
	Action v1alpha1.ValidationAction
	// FieldManager that the writer names; empty where it names none.
	FieldManager string
	// Orphans is true when an object is to be deleted and what it owns is to
	// stay.
	Orphans bool
	// ComposedResource is the name that a new object has in its Composition; empty where it
	// is composed by none.
	ComposedResource string
	// Successor is the name of another composed resource that is to stand for the external object of what is to be deleted;
	// empty for none.
	Successor string
	// Ungated is true where the kind of a new managed resource is known to have no
	// spec.managementPolicies.
	Ungated bool
	// Authorizer is the cluster's; nil where nobody can ask it.
	Authorizer authorizer.UnconditionalAuthorizer
	// Subresource that is asked for; empty for the object itself.
	Subresource string
	// DryRun is true where nothing is to be stored.
	DryRun bool
	// Approved are edits that the old object records and people have approved: they are made
	// once more, in the name of who approved them.
	Approved []ApprovedEdit
	// Options of the request, decoded; nil where they are not known.
	Options map[string]any
	// Withheld are places at which changes are held, besides those that the old object has on record.
	Withheld allowance.Withheld
	// Listed are those that a list says are held, in case nothing else does.
	Listed []allowance.Listed
	// Repairs reports whether a change of the new object reverts what somebody did to a composed resource: its pipeline desires of it
	// what it desired last. Nil where that is not known.
	Repairs func(merged map[string]any, c change.Change) bool
	// RepairsNow reports whether the composition function puts back in this request what somebody has changed or deleted by hand, by the
	// new object; nil where the function is not asked. Then what it has recorded on the object says so.
	RepairsNow func(object map[string]any, c change.Change) bool
	// Edited are fields of the parent that somebody has changed of late, by whatever shows that besides what the parent has on
	// record; nil where nothing does.
	Edited func() []string
	// UnknownCause is true where what is asked for may follow from no change of the parent, but from another revision of its
	// Composition.
	UnknownCause bool
}

// target is the object the request is about: the new one, or the old one on
// delete.
func (r *Request) target() *unstructured.Unstructured {
	if r.New != nil {
		return r.New
	}

	return r.Old
}

func (r *Request) groupKind() schema.GroupKind {
	return r.target().GroupVersionKind().GroupKind()
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
	// RuleApproval is a ChangeApproval of an edit that is stored already.
	RuleApproval Rule = "Approval"
	// RuleAllowance is an unconsumed allowance of the parent.
	RuleAllowance Rule = "Allowance"
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

	cause cause
	// of are the facts of an unallowed change, for its digest; nil where it has none.
	of *facts
	// between are the objects that the change is between.
	between []map[string]any
	// alone is true of a change that is held because it is allowed without External Update.
	alone bool
	// repeated is true of a change that the request makes once more.
	repeated bool
	// since is since when an unallowed change is held, and stored are the fields of the parent that somebody has changed who may
	// not; empty where it is not held.
	since  allowance.Since
	stored []string
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
func (f Finding) Initiator() string { return f.cause.initiator }

// Trace is the path that allowed the change, from the initiator's to the
// parent's; not to be modified.
func (f Finding) Trace() []v1alpha1.Hop { return f.cause.trace }

// cause is the path that leads to an allowed change.
type cause struct {
	initiator string
	trace     []v1alpha1.Hop
	// external are the verbs that ride along to the system behind a managed
	// resource.
	external []v1alpha1.Allowance
	// propagated is true when a parent's allowance led here.
	propagated bool
	// by is the parent's allowance that the change uses; nil for none.
	by *v1alpha1.Allowance
	// exception that excused the change, with its reason.
	exception string
}

// Decision is the answer to a Request.
type Decision struct {
	// Findings on every gated change, sorted by field.
	Findings []Finding
	// Action taken on unallowed changes; empty means none.
	Action v1alpha1.ValidationAction
	// Object is the new object as it should be stored: with our annotations,
	// with unallowed changes taken back where the action is Hold, and with the
	// set that a new managed resource's gate starts with. It shares
	// with the request's what is the same, and is not to be modified. On delete
	// it is the old object with what its deletion allows, to be stored before
	// it is deleted; nil where that is nothing.
	Object *unstructured.Unstructured
	// title names the object at the start of a refusal; empty where nothing is denied.
	title string
	// Enforcements that govern the object, by name, in order.
	Enforcements []string
	// Attestations are the values captured from the objects that led to the change,
	// and from the object itself, by field path: the initiator's first. Credentials
	// are masked.
	Attestations map[string]string
	// Held are the changes that were taken back in this or an earlier request
	// and are still asked for.
	Held []v1alpha1.HeldChange
	// Kept are other fields that were put back, for they hold an object and what it
	// is made of together.
	Kept []string
	// Forged are annotations a person tried to write that only Kausality
	// writes, by key.
	Forged []string
	// Overruled are annotations that only Kausality writes and of which the
	// writer's value is not what is stored, by key; and spec.managementPolicies,
	// where Crossplane's value is from before the gate was moved.
	Overruled []string
	// Conflict says why what would be stored is not what is decided, see [Verify]: the
	// request is to be made again. Empty otherwise.
	Conflict string
	// Warnings for the user who asks.
	Warnings []string
	// Problems are inputs that could not be used and count as absent:
	// annotations that do not parse, expressions that fail.
	Problems []error
	// Shadow are the changes that would be decided otherwise if what is in Shadow mode were
	// enforced. See [Decide]; [Verify] has none.
	Shadow []Shadowed
	// Costs are what the expressions of policies cost, each time that they were evaluated,
	// in that order; not of [Shadow].
	Costs []Cost
	// Refusal says why what is asked cannot be done at all, such as an
	// annotation over its limit. Nil otherwise.
	Refusal error

	// Withheld are the places at which changes are held now; nil for none.
	Withheld allowance.Withheld

	// governing are the Enforcements that govern the object, in order.
	governing []Source
}

// Cost is what the expressions of a policy cost.
type Cost struct {
	// Policy by name.
	Policy string
	// Units are CEL's, as Kubernetes counts them: the same for the same input, wherever and
	// whenever it is evaluated. A policy may spend [policy.CostLimit].
	Units uint64
}

// Allowed reports whether every change was asked for or is not governed.
func (d *Decision) Allowed() bool {
	for _, f := range d.Findings {
		if f.Verdict == Unallowed {
			return false
		}
	}

	return true
}
