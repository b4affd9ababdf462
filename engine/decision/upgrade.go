// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// byUpgrade searches for an active UpgradeAllowance that covers the change. None
// does below an object that somebody edited who might not: it would carry that
// along.
func (j *judge) byUpgrade(c change.Change) (Finding, bool) {
	best := j.windowFor(c)
	if best == nil || len(j.edited) > 0 {
		return Finding{}, false
	}

	return Finding{Policy: best.GetName(), cause: cause{
		initiator: InitiatorOfWindow(best.GetName()),
		external:  best.External(),
	}}, true
}

// windowFor is the active UpgradeAllowance that covers a change, of several the
// first by name; nil where none does.
func (w *windows) windowFor(c change.Change) *allowance.Window {
	var best *allowance.Window

	for _, u := range w.openWindows() {
		if u.Covers(w.groupKind(), c) && (best == nil || u.GetName() < best.GetName()) {
			best = u
		}
	}

	return best
}

// openWindows are those that are open for this user and object: found once, and
// anew where what is held may have changed the object.
func (w *windows) openWindows() []*allowance.Window {
	if w.open == nil {
		w.open = make([]*allowance.Window, 0, len(w.Upgrades))

		for _, u := range w.Upgrades {
			if w.upgradeApplies(u) {
				w.open = append(w.open, u)
			}
		}
	}

	return w.open
}

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return allowance.InitiatorOfWindow(name) }

// upgradeApplies reports whether a window is open for this user and object.
func (w *windows) upgradeApplies(u *allowance.Window) bool {
	obj := w.target()

	return u.Spec.ServiceAccount == w.User.Name && u.InForce(w.Now) && u.Selects(obj, w.Old) &&
		(!u.Spec.OncePerObject || !changedUnder(obj, u))
}

// changedUnder reports whether a window has allowed a change of an object.
func changedUnder(obj *unstructured.Unstructured, u *allowance.Window) bool {
	rec, err := allowance.ParseRecord(obj)

	return err != nil || slices.Contains(rec.Windows, windowUID(u))
}

// windowUID tells windows of one name apart. Those in files have none.
func windowUID(u *allowance.Window) types.UID { return cmp.Or(u.GetUID(), types.UID(u.GetName())) }

// uidOf is that of a window by its name.
func (w *windows) uidOf(name string) types.UID {
	for _, u := range w.Upgrades {
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
