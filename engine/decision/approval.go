// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A ChangeApproval lets one change through: of one object, to the value that was seen.
// What is held says by its digest which that is. The manager writes an allowance with
// the digest on the parent, and takes it away once the change was seen to be made.

// Approvable is what a held change is approved by.
type Approvable struct {
	// Digest of it; empty where it cannot be approved.
	Digest string
	// Masked is true where the value is hidden, and no part of the digest.
	Masked bool
	// Follows are the external actions that follow.
	Follows []string
	// Place is a hash of the keys of the elements that the change is in; empty where it is in none.
	Place string
}

// Approvable returns what the change is approved by.
func (f Finding) Approvable() Approvable {
	if f.digested == nil {
		return Approvable{}
	}

	d := f.digested()

	return Approvable{Digest: digest.Of(d), Masked: d.Masked, Follows: d.Follows, Place: placeOf(d)}
}

// placeOf is a hash of where a change of a list's element is.
func placeOf(d digest.Change) string {
	if !slices.ContainsFunc(d.Elements, func(e any) bool { _, isField := e.(string); return !isField }) {
		return ""
	}

	raw, _ := json.Marshal(d.Elements) //nolint:errchkjson // It is decoded JSON.
	sum := sha256.Sum256(raw)

	return hex.EncodeToString(sum[:4])
}

// digested is what the digest of a change stands for.
func digested(o objects, places *places, outside outside, c change.Change) digest.Change {
	out := digest.Change{Kind: o.groupKind(), Operation: digest.Update, Follows: follows(o, outside, c)}

	switch {
	case c.Field == v1alpha1.MutationCreate:
		out.Operation, out.Name = digest.Create, o.composedName()
		out.To, out.Masked = wholeValue(o.New)

		if o.Parent != nil {
			out.UID = o.Parent.GetUID()
		}
	case c.Field == v1alpha1.MutationDelete || o.Old == nil || o.New == nil:
		out.Operation = digest.Delete
		if o.Old != nil {
			out.UID = o.Old.GetUID()
		}
	default:
		out.UID, out.Elements = o.Old.GetUID(), places.locate().Elements(c)
		in := o.between()
		out.From, out.To = c.From, c.To

		if out.Masked = mask.Hides(c.Path, c.From, in...) || mask.Hides(c.Path, c.To, in...); out.Masked {
			out.From, out.To = mask.Value(c.Path, c.From, in...), mask.Value(c.Path, c.To, in...)
		}
	}

	return out
}

// wholeValue is all that is wished of a new object. What is hidden of it is masked; true
// where anything is.
func wholeValue(u *unstructured.Unstructured) (any, bool) {
	masked := false
	object := mask.Object(u.Object, func([]string, any) string {
		masked = true

		return mask.Text
	})

	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(object, key)
	}

	meta := map[string]any{}

	for _, key := range []string{"name", "namespace", "labels"} {
		if v, ok := resource.Value(object, "metadata", key); ok {
			meta[key] = v
		}
	}

	theirs := maps.Clone(resource.Map(object, "metadata", "annotations"))
	maps.DeleteFunc(theirs, func(key string, _ any) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) })

	if len(theirs) > 0 {
		meta["annotations"] = theirs
	}

	object["metadata"] = meta

	return object, masked
}

// follows are the external actions that follow a change of a managed resource with a gate.
func follows(o objects, outside outside, c change.Change) []string {
	if !resource.IsManaged(o.target()) {
		return nil
	}

	if o.Old == nil {
		if outside.ungated {
			return nil
		}

		return []string{gate.ActionCreate}
	}

	_, set := resource.Value(o.Old.Object, "spec", "managementPolicies")

	switch {
	case gate.Ungated(o.Old) || !set && !gate.Governed(o.Old):
		return nil
	case c.Field == v1alpha1.MutationDelete:
		return []string{gate.ActionDelete}
	case replaces(o, outside, c):
		return []string{gate.ActionCreate, gate.ActionDelete}
	case goesOut(c):
		return []string{gate.ActionUpdate}
	default:
		return nil
	}
}

// approved tells which allowances are of an approval of a change: by its digest, or by
// what the composition function says that Crossplane applies. What the API server and
// other webhooks make of it is not what the function has seen.
func approved(
	o objects, by writer, how manner, above *above, places *places, outside outside, c change.Change,
) func(v1alpha1.Allowance) bool {
	kind := o.groupKind()
	sum := sync.OnceValue(func() string { return digest.Of(digested(o, places, outside, c)) })

	return func(a v1alpha1.Allowance) bool {
		return allowance.OfApproval(a) && !allowance.External(a) && a.Kind == kind.Kind && a.APIGroup == kind.Group &&
			(sum() == a.Digest || vouched(o, by, how, above, a, c))
	}
}

// vouched reports whether the writer is Crossplane, which brings a record by which the function
// has made use of an allowance for the change.
func vouched(o objects, by writer, how manner, above *above, a v1alpha1.Allowance, c change.Change) bool {
	if !by.isCrossplane() || o.Asked == nil || how.settles {
		return false
	}

	return change.FieldCovers(a.Mutation, c.Path) && allowance.Used(above.recordOf(o.Asked), a)
}

// approvalUsed reports whether an allowance of an approval has served: the object shows
// the use, or the function has reported it. One to delete serves until the object is gone.
func approvalUsed(o objects, above *above, a v1alpha1.Allowance) bool {
	return a.Mutation != v1alpha1.MutationDelete && (allowance.Used(above.recordOf(o.Old), a) || above.reports(o).Used(a))
}

// reports is what the function of the parent has reported, which is read once.
func (above *above) reports(o objects) *Reported {
	if above.reported == nil {
		above.reported = ReadReported(o.Parent)
	}

	return above.reported
}

// Reported is what the composition function of an XR has reported of the allowances of
// approvals that the XR carries.
type Reported struct {
	states map[reportedUse]v1alpha1.ApprovalUseState
}

// reportedUse is an approval of a change.
type reportedUse struct{ approval, digest string }

// ReadReported reads what an XR shows of it. Of what is none nothing is reported.
func ReadReported(xr *unstructured.Unstructured) *Reported {
	out := &Reported{}

	list, ok := resource.StateOf(xr)
	if !ok {
		return out
	}

	out.states = make(map[reportedUse]v1alpha1.ApprovalUseState, len(list.Approvals))

	for _, use := range list.Approvals {
		out.states[reportedUse{use.Approval, use.Digest}] = use.State
	}

	return out
}

// Used reports whether an allowance of an approval has served.
func (r *Reported) Used(a v1alpha1.Allowance) bool {
	return r.states[reportedUse{a.Approval, a.Digest}] == v1alpha1.ApprovalUsed
}
