// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
)

// inputs are what a request says, and what the annotations of its objects say, each read once. Nothing that is decided
// changes them: of another version of the new object there are others, see [inputs.with].
type inputs struct {
	o        objects
	by       writer
	how      manner
	auth     *authority
	above    *above
	places   *places
	enforced enforced
	outside  outside
	earlier  earlier
	desired  desired
	windows  windows
	now      time.Time
	problems *problems
	proposal proposal
}

// manner is how a request is asked.
type manner struct {
	// Action on unallowed changes that the writer says; empty where Enforcements do, as in a webhook.
	Action v1alpha1.ValidationAction
	// stored is true where the new object is as it would be stored, so that nothing of it can be put back.
	stored bool
	// settles is true where a composition function reports on the parent.
	settles bool
	// composing is true where Crossplane applies a managed resource.
	composing bool
	// announced is true where Crossplane announces that it will delete the resource it applies: it continues to apply it,
	// with the allowance its deletion gives, until the gate is open for that. [Decide] gives the composition function what
	// to announce.
	announced bool
	// orphans is true where an object is to be deleted and what it owns is to stay.
	orphans bool
}

// outside is what is known of the gate of a managed resource, and of what it stands for.
type outside struct {
	// gated is true where the request is one that a gate stands before, whoever asks.
	gated bool
	// ungated is true where the kind of a new managed resource is known to have no spec.managementPolicies.
	ungated bool
	// gates is true where the manager moves them.
	gates bool
	// lateInitialize is true where the provider supports every set with LateInitialize.
	lateInitialize bool
	// successor is the composed resource that is to stand for the external object of what is to be deleted; empty for none.
	successor string
	// identity is what decides which external object one stands for.
	identity identity.Fields
}

// problems collects inputs that cannot be used.
type problems struct{ list []error }

// add notes one.
func (p *problems) add(err error) { p.list = append(p.list, err) }

// errNoObject is the problem with a request that is about nothing.
var errNoObject = errors.New("cannot decide: the request has neither an old nor a new object")

// read reads the inputs of a request. Stored is true where its new object is as it would be stored, so that nothing of
// it can be put back. The error is about a request that makes no sense.
func read(req Request, stored bool) (*inputs, error) {
	// 1. Who asks for what.
	ledger := &ledger{}

	in, err := asked(&req, &ledger.problems)
	if err != nil {
		return nil, err
	}

	// 2. What of that may be stored at all.
	in.how.stored = stored
	in.how.composing, in.how.announced = announcement(in.o, in.by)
	in.proposal = propose(in.o, in.by, in.how, in.outside.gates, req.Basis.Policies)
	in.o.New = in.proposal.object
	in.places, in.windows = newPlaces(in.o), openWindows(req.Basis.Upgrades, in.o, in.by, in.now)
	req.Operation, req.Old, req.New, req.Parent, req.Basis.Params = in.o.Operation, in.o.Old, in.o.New, in.o.Parent, req.Basis.Params.Once()
	in.auth = newAuthority(&req, in.o, in.by, ledger)

	// 3. What the records on parent and object say.
	in.above = readAbove(&req, in.o.Parent, in.problems)
	in.enforced = readEnforced(in.o, in.auth.rawInput(), req.Basis.Enforcements, req.Basis.Settings.Manager, in.problems)
	in.outside.gated = readGated(in.o, in.by)
	in.desired = readDesired(&req, in.o, in.by, in.problems)
	in.earlier = readEarlier(in.o, in.by, in.how, req.Approved)
	readWithheld(&req, in.o, in.above, in.problems)

	return in, nil
}

// asked is what a request says itself, without what its objects say.
func asked(req *Request, problems *problems) (*inputs, error) {
	o, err := objectsOf(req)
	if err != nil {
		return nil, err
	}

	return &inputs{
		o: o, by: writerOf(req.User, req.FieldManager, req.Basis.Settings), now: req.Basis.Now, problems: problems,
		how: manner{Action: req.Action, settles: req.ParentSettles, orphans: req.Orphans},
		outside: outside{
			ungated: req.Ungated, gates: req.Basis.Settings.Gates, lateInitialize: !req.Basis.Settings.WithoutLateInitialize.Has(o.groupKind()),
			successor: req.Successor, identity: req.Basis.Settings.Identity,
		},
	}, nil
}

// with are the inputs where another version of the new object is asked for. The places of changes stay those of this one.
func (in *inputs) with(object *unstructured.Unstructured) *inputs {
	out := *in
	out.o.New = object
	out.auth, out.windows = in.auth.of(out.o), in.windows.of(out.o, in.by, in.now)

	return &out
}

// within are the inputs for changes to the new object as it is, instead of those to the one of which it is left.
func (in *inputs) within() *inputs {
	out := *in
	out.places, out.auth = newPlaces(in.o), in.auth.of(in.o)

	return &out
}

// madeAgain are the inputs for changes that are made once more: before these the object was as it was before they were
// stored.
func (in *inputs) madeAgain() *inputs {
	out := *in
	out.auth = in.auth.madeAgain(in.earlier.before)

	return &out
}

// asDeletion are the inputs of a request to delete the object instead. What is wrong with that one is not told of this one.
func (in *inputs) asDeletion() *inputs {
	o, how, outside := in.o, in.how, in.outside
	o.Operation, o.New, o.Asked = OperationDelete, nil, nil
	how.stored, how.announced, how.composing, outside.gated = false, false, false, false

	out := &inputs{
		o: o, by: in.by, how: how, outside: outside, above: in.above, places: newPlaces(o), auth: in.auth.of(o),
		windows: in.windows.of(o, in.by, in.now), now: in.now, problems: &problems{},
	}
	out.auth.problems = out.problems
	out.enforced = readEnforced(o, out.auth.rawInput(), in.enforced.all, in.auth.settings.Manager, out.problems)

	return out
}

// readGated reads whether a gate stands before a managed resource.
func readGated(o objects, by writer) bool {
	return o.Operation == OperationUpdate && gate.Governed(o.Old) && !gate.Ungated(o.Old) && !by.isProvider() && !by.isManager()
}

// unallowed is the finding on an unallowed change.
func (in *inputs) unallowed(c change.Change, lacks []Lack) Finding {
	return unallowed(in.o, in.auth.Policies, in.places, in.outside, in.windows, c, lacks)
}

// guarded reports whether the request is a change of what a gate stands before,
// by somebody else than those who act for it.
func guarded(how manner, outside outside) bool { return how.Action == "" && outside.gated }
