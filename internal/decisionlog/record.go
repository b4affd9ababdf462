// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Version of the lines of a log: fields are added to it, and never renamed or removed.
const Version = "log.kausality.io/v1alpha1"

// Kinds of lines.
const (
	KindDecision = "Decision"
	KindInForce  = "InForce"
	KindDropped  = "Dropped"
)

// Header starts every line.
type Header struct {
	// APIVersion of the line.
	APIVersion string `json:"apiVersion"`
	// Kind of the line: Decision, InForce or Dropped.
	Kind string `json:"kind"`
}

// Decision is one that answered a request, with all that it was made by.
type Decision struct {
	Header `json:",inline"`

	// Time of the decision, by which windows and exceptions were judged, and which
	// expressions see as now.
	Time time.Time `json:"time"`
	// By is who decided.
	By By `json:"by"`
	// InForce is the digest of the policies, bindings, windows and Enforcements.
	InForce string `json:"inForce"`
	// Operation that was asked for: CREATE, UPDATE or DELETE.
	Operation request.Operation `json:"operation"`
	// User who asked.
	User User `json:"user"`
	// Resource of the object.
	Resource Resource `json:"resource"`
	// Subresource that was asked for; empty for the object itself. Scaling is decided as
	// the change of the object that it is.
	Subresource string `json:"subresource,omitempty"`
	// Versions in which the resource is served, where an Enforcement asks for that.
	Versions []string `json:"versions,omitempty"`
	// DryRun is true where nothing was to be stored.
	DryRun bool `json:"dryRun,omitempty"`
	// Options of the request.
	Options Object `json:"options,omitzero"`
	// FieldManager that the writer named.
	FieldManager string `json:"fieldManager,omitempty"`
	// Orphans is true where what the object owns was to stay.
	Orphans bool `json:"orphans,omitempty"`
	// Old is the object as it was; none where it was to be created.
	Old Object `json:"old,omitempty"`
	// New is the object as it was asked for; none where it was to be deleted. It is
	// without managedFields.
	New Object `json:"new,omitempty"`
	// Parent of the object.
	Parent Object `json:"parent,omitempty"`
	// ParentTrimmed is true where of the parent only that was read which decisions read
	// where no expression reads the parent.
	ParentTrimmed bool `json:"parentTrimmed,omitempty"`
	// ParentGone is true where the parent was not there.
	ParentGone bool `json:"parentGone,omitempty"`
	// ComposedResource is the name that a new object has in its Composition.
	ComposedResource string `json:"composedResource,omitempty"`
	// Successor is the name of another composed resource that is to stand for the external object of what is to be deleted.
	Successor string `json:"successor,omitempty"`
	// Repaired are the fields, or create, that the composition function puts back.
	Repaired []string `json:"repaired,omitempty"`
	// Ungated is true where the kind of a new managed resource has no
	// spec.managementPolicies.
	Ungated bool `json:"ungated,omitempty"`
	// ParentSettles is true where a composition function reports on the parent.
	ParentSettles bool `json:"parentSettles,omitempty"`
	// Namespace of the object; none where it has none or it was not read.
	Namespace Object `json:"namespace,omitempty"`
	// Action on what is unallowed that does not go by Enforcements: the function's.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Settings of the installation.
	Settings Settings `json:"settings"`
	// Parameters are those of policies that were asked for, in order.
	Parameters []Parameter `json:"parameters,omitempty"`
	// ReadsParameters is true where somebody could read any.
	ReadsParameters bool `json:"readsParameters,omitempty"`
	// Checks are what the cluster's authorizer was asked, in order.
	Checks []Check `json:"checks,omitempty"`
	// Authorizes is true where it could be asked.
	Authorizes bool `json:"authorizes,omitempty"`
	// Masked is true where credentials are masked in the objects, the parameters, the options or
	// what is known of the user: what reads them may decide otherwise than it did. What kubectl
	// keeps of what was applied is always masked, and does not count.
	Masked bool `json:"masked,omitempty"`
	// Outcome of the decision.
	Outcome Outcome `json:"outcome"`
}

// By is who decided, and for whom.
type By struct {
	// Part of Kausality: mutate, enforce or function. What mutate lets through enforce
	// decides again, as it would be stored.
	Part Part `json:"part"`
	// Stored is true where the object is as it would be stored, so that nothing of it
	// could be put back or held any more.
	Stored bool `json:"stored,omitempty"`
	// UID of the admission request; the same for mutate and enforce.
	UID string `json:"uid,omitempty"`
	// Composite resource for which the function ran.
	Composite *Composite `json:"composite,omitempty"`
}

// Part of Kausality.
type Part string

// Parts of Kausality that decide.
const (
	// PartMutate is the webhook that stamps.
	PartMutate Part = "mutate"
	// PartEnforce is the webhook that refuses.
	PartEnforce Part = "enforce"
	// PartFunction is the composition function.
	PartFunction Part = "function"
)

// Composite is a composite resource, and what it composes.
type Composite struct {
	// APIVersion, Kind, Namespace and Name of the composite resource.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Resource is the composed resource's name in the Composition.
	Resource string `json:"resource"`
	// PolicySelector is that of the pipeline's step.
	PolicySelector map[string]string `json:"policySelector,omitempty"`
}

// User is who asked.
type User struct {
	// Name of the user.
	Name string `json:"name"`
	// UID of the user.
	UID string `json:"uid,omitempty"`
	// Groups the user is in.
	Groups []string `json:"groups,omitempty"`
	// Extra is what else the authenticator knew, with credentials masked.
	Extra map[string][]string `json:"extra,omitempty"`
}

// Resource of an object, as Enforcements name it.
type Resource struct {
	// Group of it; empty for the core group.
	Group string `json:"group,omitempty"`
	// Resource is its plural; empty where it is not known.
	Resource string `json:"resource,omitempty"`
}

// Settings of an installation.
type Settings struct {
	// Crossplane is the user name that Crossplane works under.
	Crossplane string `json:"crossplane,omitempty"`
	// Manager is that of Kausality's manager.
	Manager string `json:"manager,omitempty"`
	// Gates is true where the manager moves gates.
	Gates bool `json:"gates,omitempty"`
	// WithoutLateInitialize are kinds, as KIND.GROUP, *.GROUP or *, whose gates leave
	// LateInitialize out.
	WithoutLateInitialize []string `json:"withoutLateInitialize,omitempty"`
	// Identity are fields, as KIND.GROUP=FIELD, that decide which external object a managed resource of a kind stands for.
	Identity []string `json:"identity,omitempty"`
}

// Parameter is what was found where a policy asked for its parameters.
type Parameter struct {
	// APIVersion and Kind that were asked for.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace that was asked in.
	Namespace string `json:"namespace,omitempty"`
	// ClusterScoped is true where the kind is known to be so: the namespace means nothing.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Name that was asked for; none with a selector.
	Name string `json:"name,omitempty"`
	// Selector that was asked by; none with a name.
	Selector *string `json:"selector,omitempty"`
	// Found are the objects, without managedFields and with credentials masked.
	Found []Object `json:"found,omitempty"`
	// Error says why they could not be read.
	Error string `json:"error,omitempty"`
}

// Check is what the cluster's authorizer was asked, and what it answered.
type Check struct {
	// User it was asked about, where that was not the one who made the request.
	User string `json:"user,omitempty"`
	// Verb that was asked for.
	Verb string `json:"verb"`
	// Group, Version, Resource, Subresource, Namespace and Name of what it was asked
	// about.
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Path that it was asked about, where that was no resource.
	Path string `json:"path,omitempty"`
	// FieldSelector and LabelSelector that it was asked by.
	FieldSelector string `json:"fieldSelector,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Answer: allowed, denied, noOpinion, or error.
	Answer string `json:"answer"`
	// Reason that it gave.
	Reason string `json:"reason,omitempty"`
	// Error says why it could not be asked.
	Error string `json:"error,omitempty"`
}

// InForce are the policies, bindings, windows and Enforcements that decisions were made
// by, without what does not matter to decisions.
type InForce struct {
	Header `json:",inline"`

	// Digest of the objects, by which decisions refer to them.
	Digest string `json:"digest"`
	// Policies are all AllowancePolicies, also those in Shadow mode.
	Policies []v1alpha1.AllowancePolicy `json:"policies,omitempty"`
	// Bindings are all AllowanceBindings; the function reads none.
	Bindings []v1alpha1.AllowanceBinding `json:"bindings,omitempty"`
	// Windows are all UpgradeAllowances, with whether they are active.
	Windows []v1alpha1.UpgradeAllowance `json:"windows,omitempty"`
	// Enforcements are all of them.
	Enforcements []v1alpha1.Enforcement `json:"enforcements,omitempty"`
}

// Dropped says that decisions were left out before this line.
type Dropped struct {
	Header `json:",inline"`

	// Decisions is how many.
	Decisions int64 `json:"decisions"`
}

// Object is one of the cluster.
type Object map[string]any

// UnmarshalJSON decodes an object as the API server does: whole numbers stay whole.
func (o *Object) UnmarshalJSON(raw []byte) error {
	return utiljson.Unmarshal(raw, (*map[string]any)(o))
}
