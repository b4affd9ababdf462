// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// pendingDocument is what pending prints for programs.
type pendingDocument struct {
	header `json:",inline"`

	// Pending is what waits, by the objects that people edit.
	Pending []pendingEntry `json:"pending"`
	// Classes are the same changes, with equal ones of several objects together; only
	// with --by-class.
	Classes []pendingClass `json:"classes,omitempty"`
}

// pendingEntry is what waits below one object that people edit.
type pendingEntry struct {
	// Object that people edit.
	Object objectRef `json:"object"`
	// PendingChange that lists what waits, by its namespace and name.
	PendingChange objectRef `json:"pendingChange"`
	// Digest of the whole list, as approve --yes --digest takes it.
	Digest string `json:"digest,omitempty"`
	// Total is how many changes wait, with those that are not listed.
	Total int32 `json:"total"`
	// Destroys is how many of those that are listed destroy something.
	Destroys int32 `json:"destroys"`
	// Requesters are the users who ask for the changes; unknown stands for an edit that was
	// stored while nobody could see whose it is.
	Requesters []string `json:"requesters"`
	// Required is how many people have to approve each change.
	Required int32 `json:"required"`
	// Since is when the first of the changes was first held, as far as that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Changes that wait: those that destroy something first. Each is as a PendingChange has it.
	Changes []v1alpha1.HeldChange `json:"changes"`
	// Refused are writes that were refused and would follow from changes, as a PendingChange has them.
	Refused []v1alpha1.RefusedChange `json:"refused,omitempty"`
	// Approvals that there are, and the state of each, as a PendingChange has them.
	Approvals []v1alpha1.PendingApproval `json:"approvals"`
	// Current is false where the list is from before the pipeline failed.
	Current bool `json:"current"`
	// Command approves the changes.
	Command string `json:"command"`
}

// pendingClass is one change that waits at several objects.
type pendingClass struct {
	// APIVersion of the objects that keep their value.
	APIVersion string `json:"apiVersion"`
	// Kind of them.
	Kind string `json:"kind"`
	// Field of the change with [*] for each index of a list, or create or delete.
	Field string `json:"field"`
	// From is the value kept; empty means absent.
	From string `json:"from,omitempty"`
	// To is the value asked for; empty means absent.
	To string `json:"to,omitempty"`
	// Cause of the change, without a time; absent where it is not known.
	Cause *v1alpha1.Cause `json:"cause,omitempty"`
	// Destroys is true where one of them destroys something.
	Destroys bool `json:"destroys,omitempty"`
	// Count is how many changes are like this.
	Count int `json:"count"`
	// Members are those changes.
	Members []classMember `json:"members"`
}

// classMember is a change of a class.
type classMember struct {
	// Object that people edit.
	Object objectRef `json:"object"`
	// Ref is the object that keeps its value.
	Ref v1alpha1.ObjectReference `json:"ref"`
	// ComposedResource is its name in the Composition; empty for other objects.
	ComposedResource string `json:"composedResource,omitempty"`
	// Digest of the change.
	Digest string `json:"digest,omitempty"`
}

// refs are the objects that people edit.
func (d pendingDocument) refs() []objectRef {
	out := make([]objectRef, 0, len(d.Pending))
	for _, e := range d.Pending {
		out = append(out, e.Object)
	}

	return out
}

// pendingDocumentOf is about some PendingChanges, in the order of what they are about.
func pendingDocumentOf(list []*v1alpha1.PendingChange) pendingDocument {
	doc := pendingDocument{header: header{outputVersion, "PendingList"}, Pending: []pendingEntry{}}

	for _, p := range list {
		doc.Pending = append(doc.Pending, pendingEntryOf(p))
	}

	slices.SortStableFunc(doc.Pending, func(a, b pendingEntry) int {
		return cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Object.APIVersion, b.Object.APIVersion),
		)
	})

	return doc
}

func pendingEntryOf(p *v1alpha1.PendingChange) pendingEntry {
	out := pendingEntry{
		Object: objectOf(p.Spec.ObjectRef),
		PendingChange: objectRef{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: pendingKind().Kind, Namespace: p.Namespace, Name: p.Name,
		},
		Digest: p.Status.Digest, Total: p.Status.Total, Destroys: p.Status.Destroys, Required: max(1, p.Status.Required),
		Requesters: append([]string{}, p.Status.Requesters...),
		Changes:    append([]v1alpha1.HeldChange{}, p.Status.Changes...),
		Refused:    p.Status.DeepCopy().Refused,
		Approvals:  append([]v1alpha1.PendingApproval{}, p.Status.Approvals...),
		Current:    true,
		Command:    "kubectl kausality approve " + argumentText(p.Spec.ObjectRef),
	}

	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha1.ConditionCurrent && c.Status == metav1.ConditionFalse {
			out.Current = false
		}
	}

	for _, e := range p.Status.Changes {
		if e.Cause != nil && e.Cause.Since != nil && (out.Since == nil || e.Cause.Since.Before(out.Since)) {
			out.Since = e.Cause.Since
		}
	}

	return out
}

func objectOf(ref v1alpha1.ObjectReference) objectRef {
	return objectRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// reference is an object as a PendingChange refers to it.
func (r objectRef) reference() v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// classesOf puts equal changes of several objects together: what destroys something first,
// then what there is most of.
func classesOf(list []pendingEntry) []pendingClass {
	out := []pendingClass{}
	at := map[string]int{}

	for _, entry := range list {
		for _, e := range entry.Changes {
			c := classOf(e)
			key := c.key()

			i, ok := at[key]
			if !ok {
				i = len(out)
				at[key] = i
				out = append(out, c)
			}

			out[i].Count++
			out[i].Destroys = out[i].Destroys || e.Destroys
			out[i].Members = append(out[i].Members, classMember{entry.Object, e.Ref, e.ComposedResource, e.Digest})
		}
	}

	slices.SortFunc(out, func(a, b pendingClass) int {
		switch {
		case a.Destroys != b.Destroys && a.Destroys:
			return -1
		case a.Destroys != b.Destroys:
			return 1
		default:
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.key(), b.key()))
		}
	})

	return out
}

// classOf is the class of a change, without members.
func classOf(e v1alpha1.HeldChange) pendingClass {
	out := pendingClass{APIVersion: e.Ref.APIVersion, Kind: e.Ref.Kind, Field: withoutIndices(e.Field), From: e.From, To: e.To}

	if e.Cause != nil {
		out.Cause = e.Cause.DeepCopy()
		out.Cause.Since = nil
	}

	return out
}

// key distinguishes classes. The version of an API does not.
func (c pendingClass) key() string {
	cause := v1alpha1.Cause{}
	if c.Cause != nil {
		cause = *c.Cause
	}

	gk := objectRef{APIVersion: c.APIVersion, Kind: c.Kind}.groupKind()

	return strings.Join([]string{gk.String(), c.Field, c.From, c.To, string(cause.Type), cause.User, cause.Revision}, "\x00")
}
