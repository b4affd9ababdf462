// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// facts are what a request says, and what the annotations of its objects say, each
// read once. Nothing that is decided changes them: of another version of the new
// object there are other facts, see [facts.with].
type facts struct {
	grants
	proposal
	enforcementFacts
	gateFacts
	wishFacts
	editFacts

	// permitted is what the cluster's authorizer has answered, of all that is decided by
	// these facts.
	permitted *permissions
	// bindingCosts are what bindings have used, of all that is decided by these facts.
	bindingCosts *bindingCosts
	// stored is true where the new object is as it would be stored, so that nothing of
	// it can be put back.
	stored bool
	// locator of the changes between old and new object; nil until it is asked for.
	locator *change.Locator
	// keys is likewise, by what is hidden of it, too.
	keys *change.Locator
}

// A caller is who makes a request. Its operation agrees with the objects, and its
// parent with the reference to it. New is what may be stored of it, see [facts.propose].
type caller struct{ Request }

// A lineage is what a request says of the object's parent, and of who makes what.
type lineage struct {
	caller

	// problems are inputs that cannot be used, of all that is decided by these facts.
	problems *problems
	// costs are what policies' expressions cost, of all that is decided by these facts.
	costs *costs
	// withNamespace is true where the parent is the namespace, which takes along
	// what is in it.
	withNamespace bool
	// otherXR is true of an XR whose Claim is bound to another one, or to none yet.
	otherXR bool
	// withheld are the places at which changes of the object are held.
	withheld allowance.Withheld
	// unreadable is true where a record of that is not understood: then any change of it is held.
	unreadable bool
	// edited are the edits that it carries. A record that cannot be read names some.
	edited []v1alpha1.HeldChange
}

// grants are what parent and object carry of allowances.
type grants struct {
	lineage

	// allowances that the parent carries.
	allowances []v1alpha1.Allowance
	// records of objects, once they were read; reported is how far the function of the parent has
	// reported approvals to be, likewise.
	records  map[*unstructured.Unstructured]v1alpha1.ObjectRecord
	reported *Reported
}

// enforcementFacts are what Enforcements say of the object.
type enforcementFacts struct {
	// governing are those that govern it, in the order they are given.
	governing []*enforcement.Enforcement
	// unsure is true where one may or may not.
	unsure bool
	// freed is true where one would no longer, once the request is stored.
	freed bool
}

// gateFacts are what is known of the gate of a managed resource.
type gateFacts struct {
	// gated is true where the request is one that a gate stands before, whoever asks.
	gated bool
}

// wishFacts are what is known where Crossplane applies what a composition function
// let through.
type wishFacts struct {
	// was and is are the records of wishes on the old and the new object.
	was, is *wish.Record
	// fields of the old object are those of who writes the records.
	fields managedfields.Fields
}

// editFacts are what is known of the unallowed changes that an object stores.
type editFacts struct {
	// restored are those that the request takes back.
	restored []v1alpha1.HeldChange
	// repeated are those that its user makes once more, and unedited is the old object
	// as it was before these; nil without any.
	repeated []change.Change
	// approved are those among them that people have approved.
	approvedEdits []approvedEdit
	unedited      *unstructured.Unstructured
}

// problems collects inputs that cannot be used.
type problems struct{ list []error }

// problem notes one.
func (l *lineage) problem(err error) { l.problems.list = append(l.problems.list, err) }

// costs collects what policies' expressions cost.
type costs struct{ list []Cost }

// cost notes what those of one policy did.
func (l *lineage) cost(name string, units uint64) {
	if units > 0 {
		l.costs.list = append(l.costs.list, Cost{Policy: name, Units: units})
	}
}

// errNoObject is the problem with a request that is about nothing.
var errNoObject = errors.New("cannot decide: the request has neither an old nor a new object")

// gather reads the facts of a request. Stored is true where its new object is as it
// would be stored, so that nothing of it can be put back. The error is about a request
// that makes no sense.
func gather(req Request, stored bool) (*facts, error) {
	f, err := normalize(req)
	if err != nil {
		return nil, err
	}

	f.stored, f.Params = stored, f.Params.Once()
	f.proposal = f.propose()
	f.New = f.object

	f.readParent()
	f.readEnforcements()
	f.readGate()
	f.readWishes()
	f.readEdits()
	f.readWithheld()

	return f, nil
}

// with returns the facts where another version of the new object is asked for. The changes that
// are judged by it stay those of this one, and so do their places.
func (f *facts) with(object *unstructured.Unstructured) *facts {
	out := *f
	out.New, out.locator, out.keys = object, f.locate(), f.byKeys()

	return &out
}

// within returns the facts for changes to the new object as it is, instead of those to the one of
// which it is left.
func (f *facts) within() *facts {
	out := *f
	out.locator, out.keys = nil, nil

	return &out
}

// normalize makes the operation of a request agree with the objects there are, and
// the parent with the reference to it.
func normalize(req Request) (*facts, error) {
	f := &facts{}
	f.Request, f.problems, f.costs, f.permitted, f.bindingCosts = req, &problems{}, &costs{}, &permissions{}, newBindingCosts()

	if f.Old != nil && f.Old.Object == nil {
		f.Old = nil
	}

	if f.New != nil && f.New.Object == nil {
		f.New = nil
	}

	switch {
	case f.Old == nil && f.New == nil:
		return nil, errNoObject
	case f.Old == nil || f.Operation == OperationCreate && f.New != nil:
		f.Operation, f.Old = OperationCreate, nil
	case f.New == nil || f.Operation == OperationDelete:
		f.Operation, f.New = OperationDelete, nil
	default:
		f.Operation = OperationUpdate
	}

	f.findParent()

	return f, nil
}

// findParent makes the parent agree with the reference to it. A namespace that
// is being deleted takes along what is in it: there it stands in for the parent
// that a root does not have.
func (l *lineage) findParent() {
	ref, ok := resource.ParentIn(l.Old, l.New)

	switch {
	case ok && (l.Parent == nil || !ref.Is(l.Parent)):
		l.otherXR = l.Parent != nil && ref.XR != ""
		l.Parent, l.ParentGone = nil, true
	case ok || l.Parent != nil || l.ParentGone:
	case l.Operation == OperationDelete && l.Namespace != nil && resource.Deleting(l.Namespace):
		l.Parent, l.withNamespace = l.Namespace, true
	}
}

// readParent reads what the parent allows, and what was edited of it; what does not
// parse is reported and allows nothing.
func (f *facts) readParent() {
	if f.Parent == nil {
		return
	}

	var err error
	if f.allowances, err = allowance.Parse(f.Parent); err != nil {
		f.allowances = nil
		f.problem(inObject(f.Parent, err))
	}

	if f.edited, err = allowance.ParseStored(f.Parent); err != nil {
		f.edited = []v1alpha1.HeldChange{{Field: "(unreadable)", Cause: &v1alpha1.Cause{User: unreadableUser}, Stored: &v1alpha1.StoredChange{}}}
	}
}

// readGate reads whether a gate stands before a managed resource.
func (f *facts) readGate() {
	if f.Operation != OperationUpdate || !gate.Governed(f.Old) {
		return
	}

	f.gated = !gate.Ungated(f.Old) && !f.provider() && !f.byManager()
}

// guarded reports whether the request is a change of what a gate stands before,
// by somebody else than those who act for it.
func (f *facts) guarded() bool { return f.Action == "" && f.gated }

// byCrossplane reports whether Crossplane itself asks, as far as it is known who that is.
func (c *caller) byCrossplane() bool { return c.User.Name == c.Settings.Crossplane }

// byManager reports whether our manager asks.
func (c *caller) byManager() bool { return c.User.Name == c.Settings.Manager }

// between are the objects that the changes of the request are between.
func (f *facts) between() []map[string]any {
	var out []map[string]any

	for _, u := range []*unstructured.Unstructured{f.Old, f.asked, f.New} {
		if u != nil {
			out = append(out, u.Object)
		}
	}

	return out
}

// recordOf is what an object has of allowances that it used, which is read once: it is asked for with each change and
// allowance.
func (g *grants) recordOf(u *unstructured.Unstructured) v1alpha1.ObjectRecord {
	if u == nil {
		return v1alpha1.ObjectRecord{}
	}

	rec, known := g.records[u]
	if !known {
		rec, _ = allowance.ParseRecord(u) // What does not parse is reported when it is written.

		if g.records == nil {
			g.records = map[*unstructured.Unstructured]v1alpha1.ObjectRecord{}
		}

		g.records[u] = rec
	}

	return rec
}

// root reports whether the object has no parent. A namespace that is deleted is one only
// for who carries that out: for anybody else nothing is different.
func (l *lineage) root() bool {
	return (l.Parent == nil || l.withNamespace && !deletesForOthers(l.User)) && !l.ParentGone
}
