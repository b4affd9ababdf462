// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package input reads a request once: what of the new object may be stored at all, and what the records on the object and its
// parent say. Whoever judges, holds or stamps gets parts of [Inputs] and changes none.
//
// Its files:
//   - input.go: the order in which a request is read ([Read]); the inputs of another version of the object, or of its deletion
//   - proposal.go: the stored kausality.io annotations instead of the writer's, and the few that a writer may set or remove; announced
//     deletions
//   - release.go: who may release a managed resource
//   - gatefields.go: the stored managementPolicies where Crossplane applies an older state of the gate; whether a gate holds a request
//     ([ReadGated]); read and write of the field
//   - links.go: our finalizer and the references between Claim, XR and composed resources, restored where a user removes them;
//     our finalizer on an XR with its first composed resource, and the record that it is built up
//   - windows.go: the UpgradeAllowance in force that covers a change, for its user and object ([Windows.WindowFor]); oncePerObject
//   - above.go: the allowances and edits that the parent carries ([Above]); the used allowances of an object; approvals that are used
//   - enforcement.go: the Enforcements that govern the object, and namespaces without any; a write that would free the object from one;
//     the first words of a refusal
//   - desired.go: fields that the pipeline desires as before, though the API server or a webhook stores another value ([Wished])
//   - earlier.go: recorded edits of a root that the request reverts, or makes again with what was missing, such as a ticket ([Earlier]);
//     whether a field has its last allowed value
//   - edits.go: recorded edits with value and digest, for approvals ([RecordedEdits])
//   - withheld.go: since when a change is held ([HeldSince], [SinceNow]); whether it may follow from an unallowed edit of the parent
//     ([PerhapsEdited]), or from a new revision of the Composition
package input

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Inputs are what a request says, and what the annotations of its objects say, each read once. Nothing that is decided
// changes them, but for what is remembered once it was computed: of another version of the new object there are others, see
// [Inputs.With].
type Inputs struct {
	Objects   request.Objects
	Writer    request.Writer
	Manner    request.Manner
	Authority *authority.Authority
	Above     *Above
	Places    *request.Places
	Enforced  Enforced
	External  request.External
	Earlier   Earlier
	Desired   Desired
	Windows   Windows
	Now       time.Time
	Problems  *request.Problems
	Proposal  proposal
}

// Read reads the inputs of a request. The webhook is the one that asks, unless the function does. The error is about a request
// that makes no sense.
func Read(req request.Request, webhook request.Caller) (*Inputs, error) {
	// 1. Who asks for what.
	ledger := &authority.Ledger{}

	in, err := Asked(&req, webhook, &ledger.Problems)
	if err != nil {
		return nil, err
	}

	// 2. What of that may be stored at all.
	in.Manner.Composing, in.Manner.Announced = announcement(in.Objects, in.Writer)
	in.Proposal = propose(in.Objects, in.Writer, in.Manner, in.External.Gates, req.Basis.Policies)
	in.Objects.New = in.Proposal.object
	in.Places, in.Windows = request.NewPlaces(in.Objects), openWindows(req.Basis.Upgrades, in.Objects, in.Writer, in.Now)
	req.Operation, req.Old, req.New, req.Parent = in.Objects.Operation, in.Objects.Old, in.Objects.New, in.Objects.Parent
	req.Basis.Params = req.Basis.Params.Once()
	in.Authority = authority.New(&req, in.Objects, in.Writer, ledger)

	// 3. What the records on parent and object say.
	in.Above = readAbove(&req, in.Objects.Parent, in.Problems)
	in.Enforced = readEnforced(in.Objects, in.Authority.RawInput(), req.Basis.Enforcements, req.Basis.Settings.Manager, in.Problems)
	in.External.Gated = ReadGated(in.Objects, in.Writer)
	in.Desired = readDesired(&req, in.Objects, in.Writer, in.Problems)
	in.Earlier = readEarlier(in.Objects, in.Writer, in.Manner, req.Approved)
	readWithheld(&req, in.Objects, in.Above, in.Problems)

	return in, nil
}

// Asked is what a request says itself: objects, writer, manner, time, and what is known of the gate. The records on the objects are
// not read yet, and the other inputs not set.
func Asked(req *request.Request, webhook request.Caller, problems *request.Problems) (*Inputs, error) {
	o, err := request.ObjectsOf(req)
	if err != nil {
		return nil, err
	}

	return &Inputs{
		Objects: o, Writer: request.WriterOf(req.User, req.FieldManager, req.Basis.Settings), Now: req.Basis.Now, Problems: problems,
		Manner: request.MannerOf(req, webhook),
		External: request.External{
			Ungated: req.Ungated, Gates: req.Basis.Settings.Gates, LateInitialize: !req.Basis.Settings.WithoutLateInitialize.Has(o.GroupKind()),
			Successor: req.Successor, Identity: req.Basis.Settings.Identity,
		},
	}, nil
}

// With are the inputs where another version of the new object is asked for. The places of changes stay those of this one.
func (in *Inputs) With(object *unstructured.Unstructured) *Inputs {
	out := *in
	out.Objects.New = object
	out.Authority, out.Windows = in.Authority.Of(out.Objects), in.Windows.of(out.Objects, in.Writer, in.Now)

	return &out
}

// Within are the inputs for changes to the new object as it is, instead of those to the one of which it is left.
func (in *Inputs) Within() *Inputs {
	out := *in
	out.Places, out.Authority = request.NewPlaces(in.Objects), in.Authority.Of(in.Objects)

	return &out
}

// MadeAgain are the inputs for changes that are made once more: before these the object was as it was before they were
// stored.
func (in *Inputs) MadeAgain() *Inputs {
	out := *in
	out.Authority = in.Authority.MadeAgain(in.Earlier.Before)

	return &out
}

// AsDeletion are the inputs of a request to delete the object instead. What is wrong with that one is not told of this one.
func (in *Inputs) AsDeletion() *Inputs {
	o, how, outside := in.Objects, in.Manner, in.External
	o.Operation, o.New, o.Asked = request.OperationDelete, nil, nil
	how.Announced, how.Composing, outside.Gated = false, false, false

	if how.Caller == request.Validate {
		how.Caller = request.Mutate
	}

	out := &Inputs{
		Objects: o, Writer: in.Writer, Manner: how, External: outside, Above: in.Above, Places: request.NewPlaces(o),
		Authority: in.Authority.Of(o),
		Windows:   in.Windows.of(o, in.Writer, in.Now), Now: in.Now, Problems: &request.Problems{},
	}
	out.Authority.Problems = out.Problems
	out.Enforced = readEnforced(o, out.Authority.RawInput(), in.Enforced.All, in.Authority.Settings.Manager, out.Problems)

	return out
}
