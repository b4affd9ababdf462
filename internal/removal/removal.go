// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package removal says what becomes of objects when Kausality is removed. It
// is as pure as the engine; only kubectl kausality uses it.
package removal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ErrDeleting is of an object that is being deleted and waits for Kausality.
var ErrDeleting = errors.New("it is being deleted, and waits for Kausality to hand on what its deletion allows")

// Leave is how managed resources are left.
type Leave string

// Ways to leave managed resources.
const (
	// LeaveOpen gives a managed resource the management policies that its
	// Composition asked for.
	LeaveOpen Leave = "open"
	// LeaveClosed closes its gate: its provider only observes.
	LeaveClosed Leave = "closed"
)

// FinalState is what becomes of an object.
type FinalState string

// Outcomes.
const (
	// Nothing is to be done.
	Nothing FinalState = ""
	// Cleared objects lose what Kausality wrote.
	Cleared FinalState = "cleared"
	// Opened managed resources are as their Composition asked for.
	Opened FinalState = "open"
	// Closed managed resources are only observed.
	Closed FinalState = "closed"
	// Alone are managed resources without an owner: closed, however the others
	// are left, and nothing tries to delete them any more.
	Alone FinalState = "closed, by itself"
	// Deleting are managed resources that go as far as they were allowed to.
	Deleting FinalState = "goes"
)

// Options of a removal.
type Options struct {
	// Leave is how managed resources are left.
	Leave Leave
	// Forget has the annotations go, too.
	Forget bool
	// WithoutLateInitialize are kinds whose closed gates leave that out.
	WithoutLateInitialize management.Kinds
	// Gone says which owners are there no more.
	Gone orphan.Gone
}

// Plan is what to do with one object.
type Plan struct {
	// FinalState of it.
	FinalState FinalState
	// Policies are the management policies afterwards, of a managed resource.
	Policies []string
	// Returns is true of what is closed, and Crossplane opens again: its Composition
	// gives management policies of its own.
	Returns bool
	// Patch is a JSON merge patch of the version that was read; nil for none.
	Patch map[string]any
}

// Concerns reports whether there is something of Kausality's on an object.
func Concerns(u *unstructured.Unstructured) bool { return kept(u) || len(annotations(u)) > 0 }

// PlanFor says what becomes of an object. The error is of one that is to be
// checked before: it is then left as it is.
func PlanFor(u *unstructured.Unstructured, opts Options) (Plan, error) {
	plan, err := planFor(u, opts)
	if err != nil {
		return Plan{}, fmt.Errorf("cannot release %s %q: %w", u.GetKind(), resource.Name(u), err)
	}

	return plan, nil
}

func planFor(u *unstructured.Unstructured, opts Options) (Plan, error) {
	plan := Plan{}
	spec, metadata := map[string]any{}, map[string]any{}

	if management.Governed(u) && !managed.Ungated(u) {
		if err := plan.leave(u, opts, spec, metadata); err != nil {
			return Plan{}, err
		}
	} else if kept(u) && resource.Deleting(u) {
		return Plan{}, ErrDeleting
	}

	if kept(u) {
		metadata["finalizers"] = slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == v1alpha1.Finalizer })
	}

	if written := plan.annotations(u, opts); len(written) > 0 {
		metadata["annotations"] = written
	}

	if len(spec) == 0 && len(metadata) == 0 {
		return plan, nil
	}

	if plan.FinalState == Nothing {
		plan.FinalState = Cleared
	}

	metadata["resourceVersion"] = u.GetResourceVersion()
	plan.Patch = map[string]any{"metadata": metadata}

	if len(spec) > 0 {
		plan.Patch["spec"] = spec
	}

	return plan, nil
}

// leave says how a managed resource with a gate is left.
func (p *Plan) leave(u *unstructured.Unstructured, opts Options, spec, metadata map[string]any) error {
	desired, err := management.ParseDesired(u)
	if err != nil {
		return err //nolint:wrapcheck // PlanFor names the object.
	}

	asked := desired.Policies
	if asked == nil {
		asked = []string{management.ActionAll}
	}

	closed := closedSet(u, asked, opts)
	refs, lost := owners(u, opts.Gone)

	switch {
	case resource.Deleting(u):
		// No gate is opened for who goes: what was not allowed to be deleted stays outside.
		p.FinalState = Deleting

		return nil
	case lost || alone(u):
		p.FinalState, p.Policies = Alone, closed

		if lost {
			metadata["ownerReferences"] = refs
		}
	case opts.Leave == LeaveClosed:
		p.FinalState, p.Policies = Closed, closed
		// What the function says it asks for is * where it says nothing.
		p.Returns = len(u.GetOwnerReferences()) > 0 && !slices.Equal(asked, []string{management.ActionAll}) && len(management.Acting(asked)) > 0
	default:
		p.FinalState, p.Policies = Opened, asked
	}

	if live := resource.Strings(u.Object, "spec", "managementPolicies"); live == nil || !slices.Equal(live, p.Policies) {
		spec["managementPolicies"] = list(p.Policies)
	}

	return nil
}

// annotations are those that change: nil for those that go. Without them a second removal finds nothing
// of ours, so what is closed keeps those that it takes to open it.
func (p *Plan) annotations(u *unstructured.Unstructured, opts Options) map[string]any {
	out := map[string]any{}

	for _, key := range annotations(u) {
		if opts.Forget && (p.FinalState != Closed || !slices.Contains(opening(), key)) {
			out[key] = nil
		}
	}

	if p.FinalState == Alone && !opts.Forget && resource.Annotation(u, v1alpha1.AnnotationRelease) != v1alpha1.ReleaseAlone {
		out[v1alpha1.AnnotationRelease] = v1alpha1.ReleaseAlone
	}

	return out
}

// opening are the annotations that say how to open a gate.
func opening() []string {
	return []string{v1alpha1.AnnotationDesiredPolicies, v1alpha1.AnnotationGate}
}

// Remember returns an object as it is, with what an earlier version of it said of
// how to open its gate, where it says nothing of that any more.
func Remember(live, earlier *unstructured.Unstructured) *unstructured.Unstructured {
	kept := live.GetAnnotations()
	if kept == nil {
		kept = map[string]string{}
	}

	for _, key := range opening() {
		if text := resource.Annotation(earlier, key); text != "" && kept[key] == "" {
			kept[key] = text
		}
	}

	out := live.DeepCopy()
	out.SetAnnotations(kept)

	return out
}

// alone reports whether an earlier removal left a managed resource by itself, and
// nobody has taken it since.
func alone(u *unstructured.Unstructured) bool {
	return resource.Annotation(u, v1alpha1.AnnotationRelease) == v1alpha1.ReleaseAlone && len(u.GetOwnerReferences()) == 0
}

// closedSet is that of a closed gate: as it is, where it is closed.
func closedSet(u *unstructured.Unstructured, asked []string, opts Options) []string {
	live := resource.Strings(u.Object, "spec", "managementPolicies")
	if len(live) > 0 && len(management.Acting(live)) == 0 {
		return live
	}

	if asked != nil && len(asked) == 0 {
		return []string{} // Paused, as it was asked for.
	}

	return management.Closed(asked, !opts.WithoutLateInitialize.Has(u.GroupVersionKind().GroupKind()))
}

// owners are the references to owners that are there, and whether any is not.
func owners(u *unstructured.Unstructured, gone orphan.Gone) (left []any, lost bool) {
	left = []any{}

	for _, e := range resource.List(u.Object, "metadata", "ownerReferences") {
		if ref, ok := e.(map[string]any); ok && gone != nil && gone(ref) {
			lost = true

			continue
		}

		left = append(left, e)
	}

	return left, lost
}

// kept reports whether an object waits for Kausality before it goes.
func kept(u *unstructured.Unstructured) bool {
	return slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer)
}

// annotations are the keys of those that are Kausality's, in order.
func annotations(u *unstructured.Unstructured) []string {
	var out []string

	for key := range u.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			out = append(out, key)
		}
	}

	slices.Sort(out)

	return out
}

func list(set []string) []any {
	out := make([]any, len(set))
	for i := range set {
		out[i] = set[i]
	}

	return out
}
