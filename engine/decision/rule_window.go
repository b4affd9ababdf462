// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// windows are the UpgradeAllowances.
type windows struct {
	// all there are, active or not.
	all []*allowance.Window
	// open are those that are open for the user and the object.
	open func() []*allowance.Window
}

// byUpgrade searches for an active UpgradeAllowance that covers the change. None
// does below an object that somebody edited who might not: it would carry that
// along.
func byUpgrade(o objects, above *above, windows windows, c change.Change) (Finding, bool) {
	best := windows.windowFor(o, c)
	if best == nil || len(above.edited) > 0 {
		return Finding{}, false
	}

	return Finding{Policy: best.GetName(), cause: cause{
		initiator: InitiatorOfWindow(best.GetName()),
		external:  best.External(),
	}}, true
}

// windowFor is the active UpgradeAllowance that covers a change, of several the
// first by name; nil where none does.
func (windows windows) windowFor(o objects, c change.Change) *allowance.Window {
	var best *allowance.Window

	for _, u := range windows.open() {
		if u.Covers(o.groupKind(), c) && (best == nil || u.GetName() < best.GetName()) {
			best = u
		}
	}

	return best
}

// openWindows finds those that are open for a user and an object, once.
func openWindows(all []*allowance.Window, o objects, by writer, now time.Time) windows {
	if len(all) == 0 {
		return windows{open: noWindows}
	}

	return windows{all: all, open: sync.OnceValue(func() []*allowance.Window {
		return slices.DeleteFunc(slices.Clone(all), func(u *allowance.Window) bool { return !upgradeApplies(u, o, by, now) })
	})}
}

func noWindows() []*allowance.Window { return nil }

// of are those for other objects.
func (windows windows) of(o objects, by writer, now time.Time) windows {
	return openWindows(windows.all, o, by, now)
}

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return allowance.InitiatorOfWindow(name) }

// upgradeApplies reports whether a window is open for a user and an object.
func upgradeApplies(u *allowance.Window, o objects, by writer, now time.Time) bool {
	return u.Spec.ServiceAccount == by.User.Name && u.InForce(now) && u.Selects(o.target(), o.Old) &&
		(!u.Spec.OncePerObject || !changedUnder(o.target(), u))
}

// changedUnder reports whether a window has allowed a change of an object.
func changedUnder(obj *unstructured.Unstructured, u *allowance.Window) bool {
	rec, err := allowance.ParseRecord(obj)

	return err != nil || slices.Contains(rec.Windows, windowUID(u))
}

// windowUID tells windows of one name apart. Those in files have none.
func windowUID(u *allowance.Window) types.UID { return cmp.Or(u.GetUID(), types.UID(u.GetName())) }

// uidOf is that of a window by its name.
func (windows windows) uidOf(name string) types.UID {
	for _, u := range windows.all {
		if u.GetName() == name {
			return windowUID(u)
		}
	}

	return types.UID(name)
}

// NextWindow returns when the next of some windows opens or closes, or an
// exception ends, after a moment; false where none does.
func NextWindow(upgrades []*allowance.Window, enforcements []*enforcement.Enforcement, now time.Time) (time.Time, bool) {
	var next time.Time

	consider := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}

	for _, u := range upgrades {
		consider(u.Spec.ValidFrom.Time)
		consider(u.Spec.ValidUntil.Time)
	}

	for _, e := range enforcements {
		for _, x := range e.Spec().Exceptions {
			consider(x.Until.Time)
		}
	}

	return next, !next.IsZero()
}

// usedUpgrade returns the UpgradeAllowance that allowed any of the changes.
func usedUpgrade(findings []Finding) (string, bool) {
	for _, f := range findings {
		if f.Rule == RuleUpgrade {
			return f.Policy, true
		}
	}

	return "", false
}
