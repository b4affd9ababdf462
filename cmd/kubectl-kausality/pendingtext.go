// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// visible writes a text so that nothing of it moves the cursor of a terminal, colours what
// follows, turns the order of letters around, or looks like another line: people decide by what
// they are shown.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}

	var out strings.Builder

	for _, r := range s {
		if hidden(r) {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		} else {
			out.WriteRune(r)
		}
	}

	return out.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// visibleLines are the lines of a text, each as visible writes it.
func visibleLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = visible(lines[i])
	}

	return lines
}

// refText names an object that is referred to, with its namespace where that is not the one
// of what people edit.
func refText(e v1alpha1.HeldChange, root v1alpha1.ObjectReference) string {
	if e.Ref.Name == "" && e.ComposedResource != "" {
		return visible(e.Ref.Kind + " of composed resource " + e.ComposedResource)
	}

	name := e.Ref.Name
	if e.Ref.Namespace != "" && e.Ref.Namespace != root.Namespace {
		name = e.Ref.Namespace + "/" + name
	}

	return visible(e.Ref.Kind + " " + name)
}

// rootText names what people edit.
func rootText(ref v1alpha1.ObjectReference) string {
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}

	return visible(ref.Kind + " " + name)
}

// shortText is KIND/NAME.
func shortText(ref v1alpha1.ObjectReference) string { return visible(ref.Kind + "/" + ref.Name) }

// argumentText is what people edit as arguments of a command.
func argumentText(ref v1alpha1.ObjectReference) string {
	r := objectRef{APIVersion: ref.APIVersion, Kind: ref.Kind}

	out := strings.ToLower(r.groupKind().String()) + "/" + ref.Name
	if ref.Namespace != "" {
		out += " -n " + ref.Namespace
	}

	return visible(out)
}

// wholeObject reports whether a change is of a whole object.
func wholeObject(field string) bool {
	return field == v1alpha1.MutationCreate || field == v1alpha1.MutationDelete
}

// heldText says a change without its object.
func heldText(e v1alpha1.HeldChange) string {
	switch e.Field {
	case v1alpha1.MutationCreate:
		return "is created"
	case v1alpha1.MutationDelete:
		return "is deleted"
	default:
		return visible(e.Field) + ": " + orNone(e.From) + " -> " + orNone(e.To)
	}
}

func orNone(value string) string {
	return visible(message.OrUnset(value))
}

// causeText says who or what asks for a change.
func causeText(c *v1alpha1.Cause) string {
	if c == nil {
		return "not known"
	}

	var out string

	switch c.Type {
	case v1alpha1.CauseEdit:
		out = "an edit"
	case v1alpha1.CauseComposition:
		out = "the Composition"
		if c.Revision != "" {
			out += ", revision " + visible(c.Revision)
		}
	case v1alpha1.CauseDrift:
		if out = "a change by hand"; c.User != "" {
			out += " of what is composed"
		}
	default:
		out = "the pipeline: a function, or what it reads"
		if len(c.Functions) > 0 {
			out += "; updated lately: " + visible(strings.Join(c.Functions, ", "))
		}
	}

	if c.User != "" {
		out += " by " + visible(c.User)
	}

	return out
}

// sinceText says since when, and how long that is.
func sinceText(since *metav1.Time, now time.Time) string {
	if since == nil || since.IsZero() {
		return ""
	}

	return fmt.Sprintf("since %s (%s)", since.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(since.Time)))
}

// cutText says of a change that its values are not shown in full; empty where they are.
func cutText(e v1alpha1.HeldChange) string {
	for _, value := range []string{e.From, e.To} {
		if strings.HasSuffix(value, "...") && len(value) > shortestCut {
			return "a value that ends in ... is cut here: the whole of it is meant, which this does not show"
		}
	}

	return ""
}

// shortestCut is the least bytes of a value that was cut: long lists have them at 64, of which a
// character of more bytes may have been left out.
const shortestCut = 60

// unapprovable says why a change cannot be approved; empty where it can.
func unapprovable(e v1alpha1.HeldChange) string {
	switch {
	case e.Unstable:
		return "the desired value differs each time. Make it stable in the Composition"
	case e.Digest == "":
		return "it takes an edit of its parent by someone with permission"
	default:
		return ""
	}
}

// counted is a number of things: 1 change, 2 changes.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}

	return fmt.Sprintf("%d %ss", n, thing)
}
