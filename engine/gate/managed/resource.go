// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Resource is a managed resource, and what its annotations say of its gate.
type Resource struct {
	Object *unstructured.Unstructured
	// Desired is the widest set that the gate may have, and Current the one in force.
	Desired, Current []string
	// Record is nil until the first move.
	Record     *v1alpha1.GateRecord
	Allowances []v1alpha1.Allowance
	// LateInitialize is true where the provider supports every set with that, and LooksForDrift where the kind's drift is looked for.
	LateInitialize, LooksForDrift bool
	// Identity is what decides which external object it stands for.
	Identity identity.Fields
}

// Limits are how long a gate waits, where no policy says otherwise.
type Limits struct {
	// Settle is how long a change must look applied, and MaxOpen how long a gate may be open; CloseOverdue closes it then.
	Settle, MaxOpen time.Duration
	CloseOverdue    bool
	// Policy returns what a policy says instead; nil for nothing.
	Policy func(policy string) *policy.Gate
}

// CurrentOf returns the set in force. A field that is not set means all
// actions, its default in every provider's CRD.
func CurrentOf(u *unstructured.Unstructured) []string {
	if resource.List(u.Object, "spec", "managementPolicies") == nil {
		return management.Order()
	}

	return management.Normalize(resource.Strings(u.Object, "spec", "managementPolicies"))
}

// Widest returns the widest set a gate may have: what the Composition asked
// for, without Delete where the external resource is to be orphaned, or is kept though a deletion is allowed. There an
// explicit Delete would win over deletionPolicy (crossplane-runtime,
// LegacyManagementPoliciesResolver.ShouldDelete).
func Widest(u *unstructured.Unstructured, rec *v1alpha1.GateRecord, list []v1alpha1.Allowance) ([]string, error) {
	desired, err := management.Desired(u)
	keeps := allowance.GrantsDeletion(list) && kept(u, rec) != ""

	if !Orphaned(u) && !keeps || !slices.Contains(desired, management.ActionDelete) {
		return desired, err
	}

	if desired = slices.DeleteFunc(desired, func(a string) bool { return a == management.ActionDelete }); len(desired) == 0 {
		return []string{management.ActionObserve}, err // Nothing at all would mean paused.
	}

	return desired, err
}

// UnknownAnnotations are the annotations of an object under [v1alpha1.AnnotationPrefix] that are of a former or a later version,
// in order.
func UnknownAnnotations(u *unstructured.Unstructured) []string {
	var out []string

	for key := range resource.Map(u.Object, "metadata", "annotations") {
		if management.IsUnknown(key) {
			out = append(out, key)
		}
	}

	slices.Sort(out)

	return out
}

// UnknownError is why one of them is not read.
func UnknownError(key string) error {
	return fmt.Errorf("cannot read annotation %q: %w", key, errUnknownAnnotation)
}

var errUnknownAnnotation = errors.New("this version does not know it")

// Unreadable is the error of the first of these annotations; nil without any.
func Unreadable(u *unstructured.Unstructured) error {
	if list := UnknownAnnotations(u); len(list) > 0 {
		return UnknownError(list[0])
	}

	return nil
}

// ParseRecord reads a gate's record; nil for none. The error names the annotation. A record in a state that this version does
// not know is as good as unreadable, as is one of no gate that the API server's guards do not take for that.
func ParseRecord(u *unstructured.Unstructured) (*v1alpha1.GateRecord, error) {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil {
		return nil, err
	}

	if rec.State != v1alpha1.GateOpen && rec.State != v1alpha1.GateClosed && rec.State != v1alpha1.GateUngated {
		return nil, fmt.Errorf("cannot read annotation %q: unknown state %q", v1alpha1.AnnotationGate, rec.State)
	}

	if rec.State == v1alpha1.GateUngated && !slices.Contains(UngatedRecords(), resource.Annotation(u, v1alpha1.AnnotationGate)) {
		return nil, fmt.Errorf("cannot read annotation %q: %w", v1alpha1.AnnotationGate, management.ErrNotUnderstood)
	}

	return rec, nil
}

// Orphaned reports whether a resource's deletion policy is to
// leave its external resource behind, or whether it is released so.
func Orphaned(u *unstructured.Unstructured) bool {
	return deletionPolicyOf(u) == deletionPolicyOrphan ||
		resource.Annotation(u, v1alpha1.AnnotationRelease) == v1alpha1.ReleaseOrphan
}

// Orphans reports whether a managed resource leaves its external resource behind
// when it is deleted, because that was asked for: by its deletion policy, by the
// management policies of its Composition, or by who released it.
func Orphans(u *unstructured.Unstructured) bool {
	if Orphaned(u) {
		return true
	}

	desired, err := management.Desired(u)

	return err == nil && !slices.Contains(desired, management.ActionDelete)
}

// ShutSet is the set of a closed gate. Of what is being deleted LateInitialize stays: a provider that may only observe does not
// let go of what is gone.
func (m Resource) ShutSet() []string {
	if resource.Deleting(m.Object) {
		return management.Closed(m.Desired, m.LateInitialize)
	}

	return []string{management.ActionObserve}
}

// IsShut reports whether a set that is in force is that of a closed gate, of this version or of a former one.
func (m Resource) IsShut() bool {
	return management.Same(m.Current, []string{management.ActionObserve}) ||
		management.Same(m.Current, management.Closed(m.Desired, m.LateInitialize))
}
