// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A managed resource whose provider config, external name or place changes stands for another external object from then on. Its
// provider updates that one, or makes it, and leaves the former one behind: nothing would delete that. So what a gate was open
// for is recorded, and where the managed resource names another one, the gate opens for nothing but a replacement.

// Stands reports whether there may be an external object that a managed resource stands for: its gate was open, and not just for
// a creation that has not begun.
func Stands(u *unstructured.Unstructured) bool {
	rec, err := ParseRecord(u)

	return err != nil || stands(u, rec)
}

func stands(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	if rec == nil || rec.State == v1alpha1.GateUngated {
		return false
	}

	ready, ok := resource.ConditionOf(u, resource.ConditionReady)

	return !rec.Creating || Made(u) || begun(u) || ok && ready.True()
}

// Replaced are the fields by which the managed resource stands for another external object than its gate was last open for.
func (m Resource) Replaced() []string {
	if m.Record == nil || m.Record.Identity == nil || !stands(m.Object, m.Record) {
		return nil
	}

	return slices.DeleteFunc(identity.Differs(*m.Record.Identity, identity.Of(m.Object, m.Identity)), func(field string) bool {
		return field == identity.FieldName && !m.renamed()
	})
}

// renamed reports whether anybody else than its provider may have given the managed resource another external name: that is in its
// trace. A provider gives it the name that it knows the external object by once it has made or seen that.
func (m Resource) renamed() bool {
	entries, err := allowance.ParseTrace(m.Object)

	return err != nil || slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == identity.FieldName })
}

// Recognised is the identity to record with a move: what was last recorded as long as nothing else is allowed.
func (m Resource) Recognised() *v1alpha1.ExternalIdentity {
	if m.Record != nil && m.Record.Identity != nil && len(m.Replaced()) > 0 {
		return m.Record.Identity
	}

	out := identity.Of(m.Object, m.Identity)

	return &out
}

// Replaces reports whether an allowance is to have another external object made in place of one that stays behind: it allows both
// Create and Delete, and no deletion of the managed resource gave it.
func Replaces(a v1alpha1.Allowance) bool {
	return !allowance.ByDeletion(a) && MakesAnew(a.Mutations)
}

// MakesAnew reports whether actions make an external object anew: both Create and Delete.
func MakesAnew(actions []string) bool {
	acting := management.Acting(actions)

	return slices.Contains(acting, management.ActionDelete) && slices.Contains(acting, management.ActionCreate)
}

// Behind is what stays outside without a managed resource where a gate is, or was, open for some actions.
func (m Resource) Behind(actions []string) *v1alpha1.ExternalIdentity {
	if !slices.Contains(actions, management.ActionCreate) || len(m.Replaced()) == 0 {
		return nil
	}

	return m.Record.Identity
}

// LandedIdentity is the identity to record where what a gate was open for has landed.
func (m Resource) LandedIdentity() *v1alpha1.ExternalIdentity {
	if m.Behind(m.Record.Actions) == nil {
		return m.Recognised()
	}

	out := identity.Of(m.Object, m.Identity)

	return &out
}

// WaitsForReplacement says why the gate of a managed resource stays closed that stands for another external object.
func (m Resource) WaitsForReplacement(fields []string) string {
	return "closed: " + strings.Join(fields, ", ") + " names another external object than before, and " +
		identity.Describe(m.Object, *m.Record.Identity) + " would be orphaned"
}

// AsksToDelete reports whether a deletion of the managed resource with its external object is allowed.
func (m Resource) AsksToDelete() bool { return allowance.GrantsDeletion(m.Allowances) }
