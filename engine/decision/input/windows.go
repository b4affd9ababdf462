// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// Windows are the UpgradeAllowances.
type Windows struct {
	// All there are, active or not.
	All []*allowance.Window
	// open are those that are open for the user and the object.
	open func() []*allowance.Window
}

// openWindows finds those that are open for a user and an object, once.
func openWindows(all []*allowance.Window, o request.Objects, by request.Writer, now time.Time) Windows {
	if len(all) == 0 {
		return Windows{open: noWindows}
	}

	return Windows{All: all, open: sync.OnceValue(func() []*allowance.Window {
		return slices.DeleteFunc(slices.Clone(all), func(u *allowance.Window) bool { return !upgradeApplies(u, o, by, now) })
	})}
}

func noWindows() []*allowance.Window { return nil }

// of are those for other objects.
func (windows Windows) of(o request.Objects, by request.Writer, now time.Time) Windows {
	return openWindows(windows.All, o, by, now)
}

// WindowFor is the active UpgradeAllowance that covers a change, of several the
// first by name; nil where none does.
func (windows Windows) WindowFor(o request.Objects, c change.Change) *allowance.Window {
	var best *allowance.Window

	for _, u := range windows.open() {
		if u.Covers(o.GroupKind(), c) && (best == nil || u.Object.GetName() < best.Object.GetName()) {
			best = u
		}
	}

	return best
}

// UIDOf is that of a window by its name.
func (windows Windows) UIDOf(name string) types.UID {
	for _, u := range windows.All {
		if u.Object.GetName() == name {
			return windowUID(u)
		}
	}

	return types.UID(name)
}

// upgradeApplies reports whether a window is open for a user and an object.
func upgradeApplies(u *allowance.Window, o request.Objects, by request.Writer, now time.Time) bool {
	return u.Object.Spec.ServiceAccount == by.User.Name && u.InForce(now) && u.Selects(o.Target(), o.Old) &&
		(!u.Object.Spec.OncePerObject || !ChangedUnder(o.Target(), u))
}

// windowUID tells windows of one name apart. Those in files have none.
func windowUID(u *allowance.Window) types.UID {
	return cmp.Or(u.Object.GetUID(), types.UID(u.Object.GetName()))
}

// ChangedUnder reports whether a window has allowed a change of an object.
func ChangedUnder(obj *unstructured.Unstructured, u *allowance.Window) bool {
	rec, err := allowance.ParseRecord(obj)

	return err != nil || slices.Contains(rec.Windows, windowUID(u))
}

// GenerationOfWindow is that of a window by its name; zero where there is none.
func (windows Windows) GenerationOfWindow(name string) int64 {
	for _, u := range windows.All {
		if u.Object.GetName() == name {
			return u.Object.GetGeneration()
		}
	}

	return 0
}

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return allowance.InitiatorOfWindow(name) }
