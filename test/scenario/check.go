// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errOther is the cause when something is not as expected.
var errOther = errors.New("not as expected")

// want compares a field of an object.
func want(u *unstructured.Unstructured, value string, path ...string) error {
	if got := resource.String(u.Object, path...); got != value {
		return fmt.Errorf("%s %q: %s is %q, want %q: %w", u.GetKind(), u.GetName(), strings.Join(path, "."), got, value, errOther)
	}

	return nil
}

// data compares an entry of the external object, as it is outside.
func (s *Scenario) data(ctx context.Context, key, value string) error {
	u, err := s.object(ctx)
	if err != nil {
		return err
	}

	return want(u, value, "data", key)
}

// closedSet is what a closed gate looks like.
func closedSet() []string { return []string{"Observe"} }

// closed checks that the managed resource's gate is closed, owned by us, and
// that no allowance is left.
func (s *Scenario) closed(ctx context.Context) error {
	u, err := s.managed(ctx)
	if err != nil {
		return err
	}

	rec, err := allowance.ParseGate(u)
	if err != nil {
		return err
	}

	if rec == nil || rec.State != v1alpha1.GateClosed {
		return fmt.Errorf("the gate of %s %q is %+v, want Closed: %w", u.GetKind(), u.GetName(), rec, errOther)
	}

	if got := resource.Strings(u.Object, "spec", "managementPolicies"); !slices.Equal(got, closedSet()) {
		return fmt.Errorf("%s %q has managementPolicies %v, want %v: %w", u.GetKind(), u.GetName(), got, closedSet(), errOther)
	}

	if !ownsPolicies(u) {
		return fmt.Errorf("field manager kausality-gate does not own spec.managementPolicies of %q: %w", u.GetName(), errOther)
	}

	return pruned(u)
}

// ownsPolicies reports whether kausality-gate owns spec.managementPolicies.
func ownsPolicies(u *unstructured.Unstructured) bool {
	for _, e := range u.GetManagedFields() {
		if e.Manager == "kausality-gate" && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), "f:managementPolicies") {
			return true
		}
	}

	return false
}

// pruned checks that an object had allowances and has none left.
func pruned(u *unstructured.Unstructured) error {
	if got := strings.TrimSpace(resource.Annotation(u, v1alpha1.AnnotationAllowances)); got != "[]" {
		return fmt.Errorf("%s %q has allowances %q, want []: %w", u.GetKind(), u.GetName(), got, errOther)
	}

	return nil
}

// traced checks that an object's newest trace entry of a field names hans, and
// his ticket at the Claim.
func traced(u *unstructured.Unstructured, field string) error {
	entries, err := allowance.ParseTrace(u)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 {
		return fmt.Errorf("%s %q has no trace of %s, only %+v: %w", u.GetKind(), u.GetName(), field, entries, errOther)
	}

	e := entries[i]
	if e.Initiator != hansUser || len(e.Trace) == 0 || e.Trace[0].Attestations["metadata.annotations[jira]"] != ticket {
		return fmt.Errorf("%s %q: the trace of %s does not name %s and %s: %+v: %w",
			u.GetKind(), u.GetName(), field, hansUser, ticket, e, errOther)
	}

	return nil
}

// all reads Claim, XR and managed resource.
func (s *Scenario) all(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	for _, get := range []func(context.Context) (*unstructured.Unstructured, error){s.claim, s.composite, s.managed} {
		u, err := get(ctx)
		if err != nil {
			return nil, err
		}

		out = append(out, u)
	}

	return out, nil
}

// settled checks that nothing is under way: the gate closed, allowances pruned
// on all three.
func (s *Scenario) settled(ctx context.Context) error {
	if err := s.closed(ctx); err != nil {
		return err
	}

	objects, err := s.all(ctx)
	if err != nil {
		return err
	}

	for _, u := range objects {
		if u.GetKind() == kindClaim && s.stack.CrossplaneBefore2() {
			continue // It does not say which generation of a Claim it has seen: its allowances end with a later change.
		}

		if err := pruned(u); err != nil {
			return err
		}
	}

	return nil
}
