// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Use is a request of which windows allowed at least one change. Whether the
// API server stores it is known only by what becomes of the object.
type Use struct {
	// Operation of the request.
	Operation decision.Operation
	// Windows that allowed something, by name.
	Windows []Key

	// old is the object as it was; nil on create.
	old *unstructured.Unstructured
	// changes that the windows allowed.
	changes []change.Change
	// since is when it was decided.
	since time.Time
}

// Key distinguishes a window from another one that had its name before.
type Key struct {
	Name string
	UID  types.UID
}

// UseOf returns the use that a request makes of windows, if it is stored. False
// where it makes none.
func UseOf(req *decision.Request, d *decision.Decision) (Use, bool) {
	if d.Answer().Refuses() || req.Operation == decision.OperationDelete && resource.Deleting(req.Old) {
		return Use{}, false
	}

	out := Use{Operation: req.Operation, old: req.Old, since: req.Now}

	for _, f := range d.Findings {
		if f.Verdict != decision.Allowed || f.Rule != decision.RuleUpgrade {
			continue
		}

		if req.Operation == decision.OperationCreate && f.Change.Field != v1alpha1.MutationCreate {
			continue // What it is made of is nothing by itself.
		}

		out.changes = append(out.changes, f.Change)

		for _, u := range req.Upgrades {
			if u.GetName() == f.Policy {
				out.Windows = append(out.Windows, Key{Name: u.GetName(), UID: u.GetUID()})
			}
		}
	}

	slices.SortFunc(out.Windows, func(a, b Key) int {
		if a.Name < b.Name {
			return -1
		}

		return 1
	})

	out.Windows = slices.Compact(out.Windows)

	return out, len(out.Windows) > 0
}

// Digest distinguishes uses of one version of an object by what is allowed of it.
func (u *Use) Digest() string {
	sum := sha256.New()
	for _, c := range u.changes {
		fmt.Fprintf(sum, "%q %q\n", c.Field, change.Text(c.To, math.MaxInt))
	}

	return hex.EncodeToString(sum.Sum(nil))
}

// Answer reports whether a use is stored.
type Answer int

// Answers.
const (
	// NotYet means that what was seen does not say.
	NotYet Answer = iota
	// Stored means that it is.
	Stored
	// Lost means that it is not, for something else is stored in its place.
	Lost
)

// Judge reports whether a use is stored, by what the object is next after what it
// was when the request was decided. On create that is the first object of its
// name. Gone is true where the object is as it was when it was deleted.
func (u *Use) Judge(next *unstructured.Unstructured, gone bool) Answer {
	switch u.Operation {
	case decision.OperationCreate:
		return u.created(next)
	case decision.OperationDelete:
		return u.deleted(next, gone)
	default:
		return u.updated(next)
	}
}

// clockSkew is how much our clock may be ahead of the API server's.
const clockSkew = 5 * time.Second

// created distinguishes the object that was to be made from one that was there before.
func (u *Use) created(next *unstructured.Unstructured) Answer {
	if made := next.GetCreationTimestamp(); u.traced(next) && !made.Time.Before(u.since.Add(-clockSkew)) {
		return Stored
	}

	return Lost
}

func (u *Use) deleted(next *unstructured.Unstructured, gone bool) Answer {
	switch {
	case next.GetUID() != u.old.GetUID():
		return Lost
	case gone || resource.Deleting(next):
		return Stored
	default:
		return NotYet // What the deletion gives is written before it.
	}
}

// updated compares with the old object, of which there is one next version. Its
// trace does not say: another write under the same window leaves the same one.
func (u *Use) updated(next *unstructured.Unstructured) Answer {
	if next.GetUID() == u.old.GetUID() && u.changed(next) {
		return Stored
	}

	return Lost
}

// traced reports whether an object was made under one of the windows. What only
// follows from a change under a window has a longer path.
func (u *Use) traced(next *unstructured.Unstructured) bool {
	entries, err := allowance.ParseTrace(next)
	if err != nil {
		return false
	}

	return slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool {
		return e.Field == v1alpha1.MutationCreate && len(e.Trace) == 1 &&
			slices.ContainsFunc(u.Windows, func(w Key) bool { return decision.InitiatorOfWindow(w.Name) == e.Initiator })
	})
}

// changed reports whether an object differs from the old one in all that the
// windows allowed. Where generations do not count, as those of ConfigMaps, a
// trace is the same every time; and a request to scale is traced later.
func (u *Use) changed(next *unstructured.Unstructured) bool {
	is := change.Between(u.old.Object, next.Object)

	return !slices.ContainsFunc(u.changes, func(c change.Change) bool {
		return !slices.ContainsFunc(is, func(o change.Change) bool { return o.Same(c) && change.Equal(o.To, c.To) })
	})
}
