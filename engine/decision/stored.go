// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// What is stored is not always what was allowed: a root may have been edited, a
// managed resource changed behind its gate. A message that something is held
// names who stored it.

// since is when what is stored of the managed resource was first something else than
// what was asked for.
func (f *facts) since() *metav1.Time {
	if f.record != nil {
		return f.record.Since
	}

	if f.Now.IsZero() {
		return nil
	}

	return &metav1.Time{Time: f.Now.UTC()}
}

// askedBy is the user who asks for a change that is held: of what Crossplane passes on
// from a Claim who edited that, for it copies the spec field by field. Empty where
// nobody knows.
func (g *judged) askedBy(c change.Change) string {
	if g.Action != "" {
		return "" // A composition function asks for nobody.
	}

	user := g.User.Name

	if g.byCrossplane() {
		i := slices.IndexFunc(g.edited, func(e v1alpha1.Edit) bool { return change.FieldCovers(e.Field, c.Path) })
		if i < 0 || !resource.BoundToClaim(g.New) {
			return ""
		}

		user = g.edited[i].User
	}

	return change.Text(user, maxEditValue)
}

// lackingStored says who stored the value that a change is from, where that is not
// what was asked for.
func (x explainer) lackingStored(c change.Change) []Lack {
	if x.Operation != OperationUpdate || !gate.Governed(x.Old) {
		return nil
	}

	list, err := gate.InsideOf(x.Old)
	if err != nil {
		return nil // It is reported where it is read to be put back.
	}

	i := slices.IndexFunc(list, func(in gate.Inside) bool { return within(in.Change.Path, c.Path) })
	if i < 0 || list[i].User == x.User.Name {
		return nil
	}

	return []Lack{{What: policy.LackEdited, Text: "what it is now " + StoredBy(list[i].User, list[i].Since)}}
}

// StoredBy says who stored a value, and when where that is known.
func StoredBy(user string, since time.Time) string {
	if since.IsZero() {
		return "was stored by " + user
	}

	return fmt.Sprintf("was stored by %s at %s", user, since.UTC().Format(time.RFC3339))
}

// RemedyForStored says what it takes for a change of a managed resource that is stored to be
// let out by its gate, for a person. What is not allowed is put back before a gate
// opens: so the change has to be made anew, by who may. The request is the one that
// would make it now.
func RemedyForStored(req Request, c change.Change) string {
	f, err := normalize(req)
	if err != nil || f.ParentGone {
		return "take it back"
	}

	x := explainer{newJudge(f)}

	kind, about := x.groupKind(), x.groupKind()
	if x.Parent != nil {
		about = x.Parent.GroupVersionKind().GroupKind()
	}

	var lets, without []string

	for _, p := range x.Policies.For(about) {
		switch {
		case x.Parent == nil && !p.Covers(c), x.Parent != nil && !x.gives(p, &c):
		case slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
			return a.Relation == v1alpha1.RelationExternal && letsOut(a.Mutations)
		}):
			lets = append(lets, fmt.Sprintf("policy %q lets it out %s", p.Name(), trigger(p)))
		default:
			without = append(without, fmt.Sprintf("%q", p.Name()))
		}
	}

	switch {
	case len(lets) > 0:
		return "take it back, or have it set back and set again: " + strings.Join(lets, ", ")
	case len(without) > 0:
		return fmt.Sprintf("take it back, or let policy %s allow External %s too, and have it set back and set again",
			strings.Join(without, " or "), gate.ActionUpdate)
	default:
		return fmt.Sprintf("take it back, or add an AllowancePolicy about %s that allows %s %s and External %s, "+
			"and have it set back and set again",
			about.Kind, kind.Kind, c.Pattern(), gate.ActionUpdate)
	}
}

// DescribeStored says what of a root is stored that was not allowed, without why.
func DescribeStored(h v1alpha1.HeldChange) string {
	if h.Field == unlisted {
		return "more fields, which the record has no room for"
	}

	return fmt.Sprintf("%s is %s (last allowed: %s)", h.Field, orUnset(h.To), orUnset(h.From))
}

// DescribeInside says what of a managed resource is stored and not outside, without why.
func DescribeInside(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s is %s, and stays %s outside", h.Field, orUnset(h.To), orUnset(h.From))
}
