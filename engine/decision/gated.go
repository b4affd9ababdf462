// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// judgeAll judges every change of the request that needs to be asked for.
func (d *decider) judgeAll() {
	switch d.Operation {
	case OperationDelete:
		d.decision.Findings = []Finding{d.judge(change.Delete())}
	case OperationCreate:
		d.judgeCreation()
	case OperationUpdate:
		d.changes = change.Between(d.Old.Object, d.New.Object)

		for _, c := range d.changes {
			if d.exempt(c) || d.putsBack(c) || d.wished(c) {
				continue
			}

			// Taking back needs nobody's leave; who has it is granted what follows.
			if f := d.judge(c); f.Verdict == Allowed || !d.takesBack(c) {
				d.decision.Findings = append(d.decision.Findings, f)
			}
		}

		if c, ok := d.orphaning(); ok {
			d.decision.Findings = append(d.decision.Findings, d.judge(c))
		}

		d.judgeAgain()
		slices.SortFunc(d.decision.Findings, func(a, b Finding) int { return change.Compare(a.Change, b.Change) })
	}
}

// judgeCreation judges a new object. Its fields are part of its creation: who
// may make it may fill it in. Those that policies name count by themselves, for
// what may follow from them, unless the creation itself is unallowed.
func (d *decider) judgeCreation() {
	made := d.judge(change.Create())
	d.decision.Findings = []Finding{made}

	if made.Verdict == Unallowed || len(d.Policies.For(d.groupKind())) == 0 {
		return
	}

	for _, c := range change.Between(nil, d.New.Object) {
		if !d.named(c) || d.exempt(c) {
			continue
		}

		f := d.judge(c)

		switch {
		case f.Verdict == Allowed:
			d.decision.Findings = append(d.decision.Findings, f)
		case made.Verdict == Allowed:
			f = made
			f.Change = c
			d.decision.Findings = append(d.decision.Findings, f)
		}
	}
}

// named says whether a policy about the object's kind names a change.
func (d *decider) named(c change.Change) bool {
	return slices.ContainsFunc(d.Policies.For(d.groupKind()), func(p *policy.Policy) bool { return p.Names(c) })
}

// exempt says whether a change needs nobody's asking.
func (d *decider) exempt(c change.Change) bool {
	switch {
	case c.Metadata():
		return !d.gatedMetadata(c)
	case under(c, "spec", "managementPolicies") && resource.IsManaged(cmp.Or(d.Old, d.New)):
		return true // The gate's own field; the API server guards it.
	case d.Final && d.allocated(c):
		return true
	case d.bookkeeping() && machinery(c), filledIn(c) && !d.named(c):
		return true
	default:
		return d.lateInitialization(c)
	}
}

// allocated says whether the API server may have filled in a field of a Service
// after the mutating webhook was asked.
//
// Source: k8s.io/kubernetes pkg/registry/core/service/storage/alloc.go.
func (d *decider) allocated(c change.Change) bool {
	if !c.Addition() || len(c.Path) < 2 || d.groupKind() != (schema.GroupKind{Kind: "Service"}) || c.Path[0].Field != "spec" {
		return false
	}

	switch c.Path[1].Field {
	case "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort":
		return true
	default:
		return c.Path[1].Field == "ports" && c.Path[len(c.Path)-1].Field == "nodePort"
	}
}

// gatedMetadata says whether a change of metadata counts: where a policy names
// it, and where an object would free itself from its controller.
func (d *decider) gatedMetadata(c change.Change) bool {
	if len(c.Path) > 2 && c.Path[1].Field == "annotations" && strings.HasPrefix(c.Path[2].Field, v1alpha1.AnnotationPrefix) {
		return c.Path[2].Field == v1alpha1.AnnotationRelease && d.mayRelease()
	}

	if externalName(c) && d.gated() {
		return true // The gate would open for another external object.
	}

	if under(c, "metadata", "ownerReferences") {
		return d.Old != nil && d.controllerChanges()
	}

	if under(c, "metadata", "finalizers") && d.User.Name == d.Settings.Crossplane {
		return false
	}

	return d.named(c) || d.frees(c)
}

// controllerChanges says whether the object would get another controller
// reference than the one it has.
func (d *decider) controllerChanges() bool {
	was, had := resource.ParentOf(d.Old)
	is, has := resource.ParentOf(d.New)

	return had && (!has || !sameParent(was, is))
}

// sameParent compares references by UID where both have one: an owner that
// moves to another version of its API is the same owner.
func sameParent(a, b resource.Reference) bool {
	if a.UID != "" && b.UID != "" {
		return a.UID == b.UID
	}

	return a == b
}

// machinery says whether a change is of what Crossplane keeps its books in, in the
// spec of its own kinds.
func machinery(c change.Change) bool {
	if len(c.Path) < 2 || c.Path[0].Field != "spec" {
		return false
	}

	switch c.Path[1].Field {
	case "crossplane", "resourceRef", "resourceRefs", "claimRef", "compositionRef", "compositionRevisionRef", "writeConnectionSecretToRef":
		return true
	default:
		return false
	}
}

// filledIn says whether a change is of what the API server fills in as soon as an XR
// has anything to do with Crossplane. What a new revision then asks for is held.
func filledIn(c change.Change) bool {
	const field = "compositionUpdatePolicy"

	return c.Addition() && (c.Field == "spec.crossplane."+field || c.Field == "spec."+field)
}

// lateInitialization says whether a provider fills in an unset field of its
// own managed resource, where LateInitialize is in force. One more element of a
// list that is set is no unset field.
func (d *decider) lateInitialization(c change.Change) bool {
	if d.Operation != OperationUpdate || !c.Addition() || c.Joined || !resource.IsManaged(d.Old) || !d.provider() {
		return false
	}

	if !under(c, "spec", "forProvider") && !under(c, "spec", "initProvider") {
		return false
	}

	if _, set := resource.Value(d.Old.Object, "spec", "managementPolicies"); !set {
		return true
	}

	return slices.ContainsFunc(resource.Strings(d.Old.Object, "spec", "managementPolicies"), func(p string) bool {
		return p == gate.ActionAll || p == gate.ActionLateInitialize
	})
}

// provider says whether the user is one: a service account of Crossplane's
// namespace, where it runs them all, that is not its own.
func (d *decider) provider() bool {
	if !d.User.ServiceAccount() || d.User.Name == d.Settings.Crossplane || d.User.Name == d.Settings.Manager {
		return false
	}

	i := strings.LastIndexByte(d.Settings.Crossplane, ':')

	return i < 0 || strings.HasPrefix(d.User.Name, d.Settings.Crossplane[:i+1])
}

// under says whether a change is at or below a path of map keys.
func under(c change.Change, keys ...string) bool {
	if len(c.Path) < len(keys) {
		return false
	}

	for i, k := range keys {
		if c.Path[i].Type != fieldpath.SegmentField || c.Path[i].Field != k {
			return false
		}
	}

	return true
}
