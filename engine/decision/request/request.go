// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request is what is asked of a decision: the request and what it is decided by, and what can be read off its objects,
// its user and the fields that it changes without any policy.
//
// Its files:
//   - request.go: what a caller passes: the request ([Request]), policies, bindings, settings and time ([Basis]); roots whose edits leave
//     a record
//   - objects.go: operation, old and new object, and parent ([ObjectsOf]): root or child, parent gone, namespace for bindings; changes
//     below a path ([Under])
//   - writer.go: what a user is: person, Crossplane, provider, our manager, garbage collector ([WriterOf]), may initiate by a binding;
//     builders of the children of a new parent ([Builds])
//   - manner.go: who calls the engine: webhook or function ([Manner]); the gate of a managed resource ([External]); unusable inputs
//   - celinput.go: the variables of CEL expressions and selectors; expressions that need all of the parent; the user for the authorizer
//   - place.go: where a change or an edit is, by keys of list elements, also after these move ([Places])
//   - parent.go: what a parent builds up ([BuildsUp]) and what it took over ([Adopted]); a parent older in the cache ([Behind])
//   - namespace.go: refused deletions of an XR or Claim, with its namespace or under its Claim, while managed resources exist below;
//     of a managed resource while its gate is open for another user
//   - understood.go: kausality.io annotations in a form that this version does not know ([NotUnderstood])
//   - ttl.go: how long the function's response is valid ([Basis.GoodFor]): to the next begin or end of a window or exception
package request

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
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
	WithoutLateInitialize management.Kinds
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
	Params expression.Params
	// Settings of the installation.
	Settings Settings
	// Now is the time to judge windows by.
	Now time.Time
}

// Request is one change of one object.
type Request struct {
	// Basis that it is decided by.
	Basis Basis

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
	// Action to take on unallowed changes, where the composition function asks.
	// Empty means the strictest of what the Enforcements that govern the object
	// say, and of Hold for an XR that is bound to a Claim and for a managed
	// resource with a gate; without any, none. Some deletions are denied
	// whatever these say, see rule.ActionOnUnallowed.
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

// AsksVersions reports whether a request is decided by the versions in which the object's
// resource is served: an Enforcement asks for that.
func (r *Request) AsksVersions() bool {
	return slices.ContainsFunc(r.Basis.Enforcements, func(e *enforcement.Enforcement) bool { return e.AsksVersions(r.Resource) })
}

// RecordsEdits reports whether of each change of a root's spec something tells where the webhook is asked:
// its trace, or the record of edits. It does not where no policy says who may change such objects, but for XRs
// of Claims: what Crossplane passes on to these is held or traced by any policy about them. Nor does it where
// an Enforcement about the root's resource leaves fields alone that no policy names.
func (b Basis) RecordsEdits(root *unstructured.Unstructured, gr schema.GroupResource) bool {
	gk := root.GroupVersionKind().GroupKind()

	return (b.Policies.Governs(gk) || resource.BoundToClaim(root) && len(b.Policies.For(gk)) > 0) &&
		!slices.ContainsFunc(b.Enforcements, func(e *enforcement.Enforcement) bool { return e.IgnoresUnnamed() && e.Covers(gr) })
}

// ApprovedEdit is an edit that an object records, and that people have approved.
type ApprovedEdit struct {
	// Digest of it, see input.RecordedEdits.
	Digest string
	// Initiator is who has approved it.
	Initiator string
	// Hop is the ChangeApproval.
	Hop v1alpha1.Hop
}
