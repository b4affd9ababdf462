// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

const (
	// kindApproval is the kind of the hop that what is approved starts with.
	kindApproval = "ChangeApproval"
	// fieldApproval is the field of that hop: a spec never changes.
	fieldApproval = "spec"
	// maxAttested is how many bytes of a reason, or of names, an allowance carries. All that an
	// object carries is limited, and 100 changes may be approved at once.
	maxAttested = 128
)

// Allowances are those that an approval gives to the parent of a change: one for the change,
// and where external actions follow one for these, which rides along. Others are the names
// of all other people who have approved it, in order.
func Allowances(entry v1alpha1.HeldChange, cha *v1alpha1.ChangeApproval, parentGeneration int64, others []string) []v1alpha1.Allowance {
	a := v1alpha1.Allowance{
		APIGroup: schema.FromAPIVersionAndKind(entry.Ref.APIVersion, "").Group, Kind: entry.Ref.Kind, Mutation: entry.Field,
		Generation: parentGeneration, ID: allowance.ID(parentGeneration, 0), Digest: entry.Digest, Approval: string(cha.UID),
		Trace:  []v1alpha1.Hop{hopOf(entry, cha, others)},
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceApproval, Name: cha.Name},
	}
	if cha.Spec.Approver != nil {
		a.Initiator = cha.Spec.Approver.Username
	}

	if len(entry.Follows) == 0 {
		return []v1alpha1.Allowance{a}
	}

	external := a
	external.APIGroup, external.Kind, external.Mutation = "", "", ""
	external.Relation, external.Mutations = v1alpha1.RelationExternal, slices.Clone(entry.Follows)
	external.Trace = slices.Clone(a.Trace)

	return []v1alpha1.Allowance{a, external}
}

// hopOf is the approval, as the first hop of what follows from it.
func hopOf(entry v1alpha1.HeldChange, cha *v1alpha1.ChangeApproval, others []string) v1alpha1.Hop {
	hop := v1alpha1.Hop{
		Kind: kindApproval, Name: cha.Name, Generation: 1, Field: fieldApproval,
		Attestations: map[string]string{v1alpha1.AttestationDigest: entry.Digest},
	}

	if entry.Parent == nil || entry.Parent.Namespace != cha.Namespace {
		hop.Namespace = new(cha.Namespace)
	}

	attest := func(key, value string) {
		if value != "" {
			hop.Attestations[key] = cut(value)
		}
	}

	attest(v1alpha1.AttestationReason, cha.Spec.Reason)
	attest(v1alpha1.AttestationApprovers, strings.Join(others, ", "))

	if cha.Spec.Decision == v1alpha1.DecisionBreakGlass {
		attest(v1alpha1.AttestationDecision, string(cha.Spec.Decision))
	}

	if entry.Cause != nil {
		attest(v1alpha1.AttestationRequester, entry.Cause.User)
	}

	return hop
}

// cut shortens a text to what an allowance carries of it.
func cut(text string) string {
	if len(text) <= maxAttested {
		return text
	}

	end := maxAttested
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + "..."
}

// Used reports whether the record of a child shows that an allowance of an approval was used
// for it.
func Used(child *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	rec, err := allowance.ParseRecord(child)

	return err == nil && allowance.Used(rec, a)
}

// give is what an approval gives to the parent of a held change, for all people who have approved it.
func give(c *change, v *vote, people []string, parentGeneration int64) *Grant {
	others := slices.DeleteFunc(slices.Clone(people), func(user string) bool { return user == v.user() })
	slices.Sort(others)

	out := &Grant{
		Approval: v.cha.Name, User: v.user(), UID: v.cha.UID, Digest: c.digest, Decision: v.decision(),
		Ref: c.of.ref, Field: c.of.field, Reason: v.cha.Spec.Reason,
	}

	if c.edit() {
		out.Hop = hopOf(*c.entry, v.cha, others)
	} else {
		out.Allowances = Allowances(*c.entry, v.cha, parentGeneration, others)
	}

	return out
}

// whole reports whether a parent carries all that an approval gives for a held change.
func (g *grant) whole(c *change) bool {
	n := 0

	for _, a := range g.parent.Allowances {
		if a.Approval == g.allowance.Approval && a.Digest == c.digest {
			n++
		}
	}

	return n == len(Allowances(*c.entry, g.vote.cha, 0, nil))
}

// approval is the name of the ChangeApproval that gave it, and uid its UID.
func (g *grant) approval() string { return g.allowance.Source.Name }

func (g *grant) uid() types.UID { return types.UID(g.allowance.Approval) }

// decision is that of the ChangeApproval that gave it; empty for one that approves like others.
func (g *grant) decision() v1alpha1.ApprovalDecision {
	if len(g.allowance.Trace) == 0 {
		return ""
	}

	return v1alpha1.ApprovalDecision(g.allowance.Trace[0].Attestations[v1alpha1.AttestationDecision])
}
