// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// warnings warn the user of what will not follow from their change, or what of it
// was held. A refusal says it by itself, and Audit reports it in the record alone.
func warnings(o request.Objects, earlier input.Earlier, j *rule.Judged) []string {
	if j.Action == v1alpha1.ActionAudit || j.Refuses() {
		return nil
	}

	var out []string

	for _, f := range j.Findings {
		if f.Verdict == finding.Unallowed {
			out = append(out, warning(o, f, effect(o, j, f)))
		}
	}

	if o.Operation == request.OperationDelete && j.Allowed() && resource.IsManaged(o.Old) {
		if why := managed.Kept(o.Old); why != "" {
			out = append(out, fmt.Sprintf("%s %q: its external object remains: %s", o.GroupKind().Kind, resource.Name(o.Old), why))
		}
	}

	return append(out, editWarnings(o, earlier, j)...)
}

// warning says what becomes of an unallowed change, why, and what to do about it, as far as there is room.
func warning(o request.Objects, f finding.Finding, effect string) string {
	head, why := o.Title()+": "+effect, f.Why()
	if len(why) == 0 {
		return message.First(head)
	}

	fix := ""

	if i := slices.IndexFunc(f.Lacks, func(l finding.Lack) bool { return l.Fix != "" }); i >= 0 {
		fix = sentence(f.Lacks[i].Fix)
	}

	if orphansBelow(o, f.Change) {
		fix = listBelow(o)
	}

	head += ": "
	brief, command := f.Briefly(), "kubectl kausality explain "+resource.Argument(o.Target())

	if f.Change.Field == v1alpha1.MutationCreate { // There is nothing to explain yet.
		command = ""
	}

	more := ""
	if n := len(why) - 1; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}

	return message.First(
		message.Then(head+strings.Join(why, "; "), fix), message.Then(head+why[0]+more, fix), message.Then(head+why[0]+more, command),
		message.Then(head+strings.Join(brief, "; "), command), message.Then(head+brief[0]+more, command),
		head+why[0]+more, head+brief[0]+more,
		head+message.Join(why, message.Most-utf8.RuneCountInString(head)))
}

// effect says what becomes of an unallowed change.
func effect(o request.Objects, j *rule.Judged, f finding.Finding) string {
	c := f.Change

	switch {
	case j.Action == v1alpha1.ActionHold && o.Operation == request.OperationUpdate:
		h := hold.HeldChange(f)
		h.From, h.To = message.Cut(h.From, maxShown), message.Cut(h.To, maxShown)

		return "change held: " + Describe(h)
	case orphansBelow(o, c):
		return "deleted, and its managed resources are orphaned"
	case c.Field == v1alpha1.MutationCreate:
		return "created, though not allowed"
	case c.Field == v1alpha1.MutationDelete && resource.IsManaged(o.Old):
		return "deletion not allowed" // A guard may refuse it.
	case c.Field == v1alpha1.MutationDelete:
		return "deleted, though not allowed"
	case o.Root:
		return c.Field + " is saved but will not be applied"
	default:
		return fmt.Sprintf("change of %s not allowed", c.Field)
	}
}

// maxShown limits the characters of a value in a warning.
const maxShown = 24

// orphansBelow reports whether a change is the deletion of a Claim or XR, which orphans its managed resources unless it is allowed.
func orphansBelow(o request.Objects, c change.Change) bool {
	return c.Field == v1alpha1.MutationDelete && o.Root && (resource.IsClaim(o.Old) || resource.IsComposite(o.Old))
}

// listBelow is the command that lists the managed resources of a Claim or XR.
func listBelow(o request.Objects) string {
	label := "crossplane.io/composite"
	if resource.IsClaim(o.Old) {
		label = "crossplane.io/claim-name"
	}

	return fmt.Sprintf("kubectl get managed -A -l %s=%s", label, o.Old.GetName())
}

// DescribePassed says what of an unallowed change was made, without why.
func DescribePassed(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s is changed from %s to %s", h.Field, message.OrUnset(h.From), message.OrUnset(h.To))
}

// DescribeDrift says what was changed of an external object, see [managed.DriftEntries].
func DescribeDrift(h v1alpha1.HeldChange) string {
	switch {
	case slices.Contains(h.Follows, management.ActionCreate):
		return "it is gone"
	case h.From == managed.AnotherObject:
		return "it is another object"
	}

	return DescribePassed(v1alpha1.HeldChange{Field: h.Field, From: h.To, To: h.From})
}

// sentence begins a text as one, unless that is a command.
func sentence(text string) string {
	if strings.HasPrefix(text, "kubectl ") {
		return text
	}

	return strings.ToUpper(text[:1]) + text[1:]
}

func unallowedMessage(findings []finding.Finding) string {
	var parts []string

	more := 0

	for _, f := range findings {
		switch {
		case f.Verdict != finding.Unallowed:
		case len(parts) == finding.MaxRefused:
			more++
		default:
			parts = append(parts, fmt.Sprintf("%s: %s", f.Change.Field, f.Missing()))
		}
	}

	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}

	return input.RefusedAs(findings) + strings.Join(parts, "; ")
}

func forgedMessage(keys []string) string {
	return fmt.Sprintf("only Kausality writes annotation %s: remove it from the manifest. To allow a change, add an AllowancePolicy",
		strings.Join(keys, ", "))
}

// keptMessage says that an annotation of ours keeps its value, though somebody
// wrote another one beside other changes.
func keptMessage(u *unstructured.Unstructured, key string) string {
	return fmt.Sprintf("%s %q: annotation %s is unchanged: only Kausality writes it", u.GetKind(), resource.Name(u), key)
}

// editWarnings show what is taken back, and what still lacks something.
func editWarnings(o request.Objects, earlier input.Earlier, j *rule.Judged) []string {
	if len(earlier.Restored)+len(j.Incomplete) == 0 {
		return nil
	}

	out := make([]string, 0, len(earlier.Restored)+len(j.Incomplete))
	object := fmt.Sprintf("%s %q", o.GroupKind().Kind, resource.Name(o.Target()))

	for _, e := range earlier.Restored {
		out = append(out, message.First(
			fmt.Sprintf("%s: %s's edit of %s is reverted", object, allowance.Author(e), e.Field)))
	}

	for _, f := range j.Incomplete {
		out = append(out, warning(o, f, fmt.Sprintf("your edit of %s is still saved, and will not be applied", f.Change.Field)))
	}

	return out
}
