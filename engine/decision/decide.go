// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/apply"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// decider holds what one decision needs more than once.
type decider struct {
	Request

	changes          []change.Change
	parentAllowances []v1alpha1.Allowance
	governing        []*enforcement.Enforcement
	// unsure is true where an Enforcement may or may not govern the object.
	unsure   bool
	verdicts map[verdictKey]policy.Verdict
	// windows are those that are open for who asks; nil until they are looked for.
	windows []*v1alpha1.UpgradeAllowance
	// freed is true where an Enforcement would no longer govern what is asked for.
	freed bool
	// back are the changes that were taken back, in order.
	back []change.Change
	// asked is the new object with the annotations that the writer asks for.
	asked *unstructured.Unstructured
	// composing is true when Crossplane applies a managed resource; announced
	// when the resource is to be deleted next.
	composing, announced bool
	// base is the old object as it was asked for, by record, and away is what the
	// new one makes of that. Unread is true when no record could be read.
	base   *unstructured.Unstructured
	record *v1alpha1.AskedRecord
	away   []change.Change
	unread bool
	// was and is are the records of wishes on the old and the new object, where
	// Crossplane applies what a composition function let through.
	was, is *wish.Record
	// fields of the old object are those of who writes the records.
	fields apply.Fields
	// restored are the edits of the root that the request takes back, and again the
	// changes of its user that it makes again: stood is the object as it was before
	// those, nil without any, and incomplete are those that still lack something.
	restored   []v1alpha1.Edit
	again      []change.Change
	stood      *unstructured.Unstructured
	incomplete []Finding
	// before is the old object as expressions are to see it; nil for the old object.
	before *unstructured.Unstructured
	// withNamespace is true where the parent is the namespace, which takes along
	// what is in it.
	withNamespace bool
	// gate is what stands before the object; nil until that is asked for.
	gate *gateBefore

	decision Decision
}

// Decide judges a request. The request and its objects are not modified.
func Decide(req Request) Decision {
	d := &decider{Request: req}

	if err := d.complete(); err != nil {
		return Decision{Problems: []error{err}}
	}

	// 1. Take what only Kausality writes, and what only Crossplane changes, from the
	// old object.
	d.announce()
	d.protect()
	d.keepGate()
	d.keepTogether()

	// 2. Read what the parent allows, and who enforces it.
	d.readParent()
	d.readEnforcements()
	d.readAsked()
	d.readWishes()
	d.readEdits()

	// 3. Judge every gated change.
	d.judgeAll()

	// 4. Take back what is not allowed, where that is the action.
	d.decision.Action = d.action()
	d.hold()
	d.warn()

	// 5. Stamp why, and what may follow.
	if d.Operation == OperationDelete {
		d.grantDeletion()
	} else {
		d.stamp()
		d.compare()
		d.decision.Object = d.New
	}

	// 6. Note what tells of the decision.
	d.attestLead()

	if d.decision.Action == v1alpha1.ActionDeny && !d.decision.Allowed() {
		d.decision.title = d.title() + ": "
	}

	return d.decision
}

// errNoObject is the problem with a request that is about nothing.
var errNoObject = errors.New("cannot decide: the request has neither an old nor a new object")

// complete makes the operation agree with the objects there are, and the parent
// with the reference to it.
func (d *decider) complete() error {
	if d.Old != nil && d.Old.Object == nil {
		d.Old = nil
	}

	if d.New != nil && d.New.Object == nil {
		d.New = nil
	}

	switch {
	case d.Old == nil && d.New == nil:
		return errNoObject
	case d.Old == nil || d.Operation == OperationCreate && d.New != nil:
		d.Operation, d.Old = OperationCreate, nil
	case d.New == nil || d.Operation == OperationDelete:
		d.Operation, d.New = OperationDelete, nil
	default:
		d.Operation = OperationUpdate
	}

	d.findParent()

	return nil
}

// findParent makes the parent agree with the reference to it. A namespace that
// is being deleted takes along what is in it: there it stands in for the parent
// that a root does not have.
func (d *decider) findParent() {
	ref, ok := resource.ParentIn(d.Old, d.New)

	switch {
	case ok && (d.Parent == nil || !ref.Is(d.Parent)):
		d.Parent, d.ParentGone = nil, true
	case ok || d.Parent != nil || d.ParentGone:
	case d.Operation == OperationDelete && d.Namespace != nil && resource.Deleting(d.Namespace):
		d.Parent, d.withNamespace = d.Namespace, true
	}
}

// readParent parses the parent's allowances; what does not parse is reported
// and allows nothing.
func (d *decider) readParent() {
	if d.Parent == nil {
		return
	}

	list, err := allowance.Parse(d.Parent)
	if err != nil {
		d.problem(inObject(d.Parent, err))

		return
	}

	d.parentAllowances = list
}

func (d *decider) problem(err error) {
	d.decision.Problems = append(d.decision.Problems, err)
}

// readEnforcements finds the Enforcements that govern the object.
func (d *decider) readEnforcements() {
	if d.ourOwn() {
		return
	}

	for _, e := range d.Enforcements {
		governs, err := e.Governs(d.Resource, d.input())
		if err != nil {
			d.problem(&policy.EvaluationError{
				Kind: policy.KindEnforcement, Name: e.Name(), Err: fmt.Errorf("enforcement %q: %w", e.Name(), err),
			})
		}

		d.unsure = d.unsure || governs && err != nil || e.Unsure(d.Resource, d.input())

		if governs {
			d.governing = append(d.governing, e)
			d.decision.Enforcements = append(d.decision.Enforcements, e.Name())
			d.decision.governing = append(d.decision.governing, Source{Kind: policy.KindEnforcement, Name: e.Name(), Generation: e.Generation()})
		}
	}

	slices.Sort(d.decision.Enforcements)
	slices.SortFunc(d.decision.governing, compareSources)
	d.readFreed()
}

// ourOwn says whether the object is in the namespace Kausality itself runs in,
// or in that of the cluster's own components, which no Enforcement covers: a
// mistaken one must not lock it out.
func (d *decider) ourOwn() bool {
	rest, ok := strings.CutPrefix(d.Settings.Manager, policy.ServiceAccountPrefix)
	ours, _, _ := strings.Cut(rest, ":")
	u := d.subject()

	namespace := resource.String(u.Object, "metadata", "namespace")
	if u.GetKind() == "Namespace" {
		namespace = u.GetName()
	}

	return ok && namespace == ours || namespace == metav1.NamespaceSystem
}

// exempt says whether a user does as Kubernetes tells it: the garbage collector
// and the namespace controller carry out deletions that others asked for.
//
// Source: k8s.io/kubernetes pkg/controlplane/controller and
// cmd/kube-controller-manager/names, under --use-service-account-credentials.
func exempt(u policy.User) bool {
	return u.Name == "system:serviceaccount:kube-system:generic-garbage-collector" || u.Name == namespaceController
}

// action is what to do about unallowed changes.
func (d *decider) action() v1alpha1.ValidationAction {
	switch {
	case d.Action != "":
		return d.Action
	case d.staysInNamespace() || d.openForAnother():
		return v1alpha1.ActionDeny
	case exempt(d.User):
		return ""
	}

	strictest := v1alpha1.ValidationAction("")
	if d.Old != nil && resource.BoundToClaim(d.Old) {
		strictest = v1alpha1.ActionHold
	}

	if d.gatekept() && (gate.Exposed(d.Old) || d.revealing()) {
		strictest = v1alpha1.ActionHold
	}

	unnamed := d.onlyUnnamed()

	for _, e := range d.governing {
		if unnamed && e.IgnoresUnnamed() {
			continue
		}

		if a := actionOf(e); enforcement.Strictness(a) > enforcement.Strictness(strictest) {
			strictest = a
		}
	}

	return strictest
}

// onlyUnnamed says whether something is unallowed, and all that is so is of fields
// that no policy names, and that no Enforcement goes by.
func (d *decider) onlyUnnamed() bool {
	return !d.decision.Allowed() && !slices.ContainsFunc(d.decision.Findings, func(f Finding) bool {
		return f.Verdict == Unallowed && (!d.unnamed(f.Change) || d.frees(f.Change))
	})
}

// hold puts unallowed changes back to their old value. What is allowed may rest
// on what is held, by a policy's expression; it is judged again by the object
// that is left, until nothing more is held.
func (d *decider) hold() {
	if d.decision.Action != v1alpha1.ActionHold || d.Operation != OperationUpdate || d.Final {
		return
	}

	for asked := d.New; d.unallowed(); {
		d.New = &unstructured.Unstructured{Object: change.Merge(d.Old.Object, asked.Object, d.held)}
		own(d.New)

		d.verdicts, d.windows = nil, nil

		for i, f := range d.decision.Findings {
			switch {
			case f.Rule != RuleInitiate:
			case f.again:
				d.decision.Findings[i] = d.judgedAgain(f.Change)
			default:
				d.decision.Findings[i] = d.judge(f.Change)
			}
		}

		d.dropIncomplete()
		d.holdBeside()
		d.holdWhole()
		d.holdChoices(asked)
	}

	for _, f := range d.decision.Findings {
		if f.Verdict == Unallowed {
			h := HeldChange(f)
			h.User = d.askedBy(f.Change)
			d.decision.Held = append(d.decision.Held, h)
		}
	}

	d.keepOrphaning()
	d.keepHeld()
	d.keepWishes()
}

// holdBeside has changes of a list held too that are not allowed where they are
// once others of the same list are taken back: what is held moves them.
func (d *decider) holdBeside() {
	for _, c := range change.Between(d.Old.Object, d.New.Object) {
		if d.exempt(c) || d.putsBack(c) || d.takesBack(c) {
			continue
		}

		f := d.judge(c)
		if f.Verdict != Unallowed {
			continue
		}

		list := c.List()

		for i, other := range d.decision.Findings {
			if other.Verdict == Allowed && list != "" && other.Change.List() == list {
				d.decision.Findings[i] = d.lacking(other.Change, f.Lacks)
			}
		}
	}
}

// unallowed notes which changes are to be taken back, and says whether these
// are more than before.
func (d *decider) unallowed() bool {
	before := len(d.back)
	d.back = d.back[:0]

	for _, f := range d.decision.Findings {
		if f.Verdict == Unallowed {
			d.back = append(d.back, f.Change)
		}
	}

	return len(d.back) > before
}

// held says whether a change was taken back.
func (d *decider) held(c change.Change) bool {
	_, ok := slices.BinarySearchFunc(d.back, c, change.Compare)

	return ok
}

// verdictKey is what a verdict is on: a policy, by the object as it was, or as it was
// before changes that are made again.
type verdictKey struct {
	policy string
	before bool
}

// evaluate checks a policy's selectors and expressions once per decision.
func (d *decider) evaluate(p *policy.Policy) policy.Verdict {
	key := verdictKey{policy: p.Name(), before: d.before != nil}

	v, ok := d.verdicts[key]
	if !ok {
		v = p.Evaluate(d.input())

		if d.verdicts == nil {
			d.verdicts = map[verdictKey]policy.Verdict{}
		}

		d.verdicts[key] = v

		if v.Problem != nil {
			d.problem(&policy.EvaluationError{
				Kind: policy.KindPolicy, Name: p.Name(), Err: fmt.Errorf("policy %q: %w", p.Name(), v.Problem),
			})
		}
	}

	return v
}
