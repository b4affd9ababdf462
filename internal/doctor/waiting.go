// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

// maxWaiting is how long something may be held before somebody should look at it.
const maxWaiting = 24 * time.Hour

// waiting checks for what is held for long, and nobody has taken back or let through.
func waiting(s *State) []Finding {
	var out []Finding

	for _, u := range s.Lists[PendingChanges].Items {
		total := resource.Int(u.Object, "status", "total")
		_, finished := resource.Value(u.Object, "status", "finishedAt")
		since := heldSince(u)

		if finished || total == 0 || s.Now.Sub(since) < maxWaiting {
			continue
		}

		held := fmt.Sprintf("%d changes are", total)
		if total == 1 {
			held = "1 change is"
		}

		about, argument := pendingObject(u)
		out = append(out, Finding{
			Severity: Warning, Object: about, What: fmt.Sprintf("%s held below it, since %s", held, since.UTC().Format(time.RFC3339)),
			Why:    "what was asked for is not made, and nobody decides about it",
			Remedy: "look at it with kubectl kausality pending " + argument + ", and have it approved, rejected or taken back",
		})
	}

	return out
}

// released checks for what is held of managed resources of XRs whose Compositions do not run the function any more: it happens once
// Kausality goes.
func released(s *State) []Finding {
	var objects []*unstructured.Unstructured

	for _, xr := range slices.Concat(s.Composites, s.Former) {
		if !Dropped(xr) {
			continue
		}

		objects = append(objects, xr)

		for _, u := range s.Managed {
			if ref, ok := resource.ParentOf(u); ok && ref.Is(xr) {
				objects = append(objects, u)
			}
		}
	}

	held := removal.Held(objects)
	out := make([]Finding, 0, len(held))

	for _, e := range held {
		out = append(out, Finding{
			Severity: Warning, Object: e.Ref.Kind + " " + e.Ref.Name, What: removal.Describe(e) + " once nobody holds it",
			Why:    "its Composition does not run the function any more",
			Remedy: "run the function in it again, and approve or revert the change",
		})
	}

	return out
}

// heldSince is when the first change of a PendingChange was held that is held now.
func heldSince(u *unstructured.Unstructured) time.Time {
	out := time.Time{}

	for _, e := range maps(u.Object, "status", "changes") {
		since, err := time.Parse(time.RFC3339, resource.String(e, "cause", "since"))
		if err == nil && (out.IsZero() || since.Before(out)) {
			out = since
		}
	}

	if out.IsZero() {
		return u.GetCreationTimestamp().Time
	}

	return out
}

// pendingObject names the object that people edit, as findings do and as commands take it.
func pendingObject(u *unstructured.Unstructured) (about, argument string) {
	ref := resource.Map(u.Object, "spec", "objectRef")
	kind, named, namespace := resource.String(ref, "kind"), resource.String(ref, "name"), resource.String(ref, "namespace")
	gk := schema.FromAPIVersionAndKind(resource.String(ref, "apiVersion"), kind).GroupKind()

	about, argument = kind+" "+named, strings.ToLower(gk.String())+"/"+named
	if namespace != "" {
		about, argument = kind+" "+namespace+"/"+named, argument+" -n "+namespace
	}

	return about, argument
}
