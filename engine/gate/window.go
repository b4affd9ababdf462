// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// windowsGiven is what windows give by themselves.
type windowsGiven struct {
	// windows there are, in force or not.
	windows []v1alpha1.UpgradeAllowance
	// giving are those that give the resource something it has not got yet,
	// and over names those that take back what they gave.
	giving []v1alpha1.GateWindow
	over   []string
}

// A new version of a provider may want other things of the external system, and
// what somebody changed there is to be put back: no field of a managed resource
// changes for that, so no allowance would ever reach it. A window that allows
// External actions only, and selects managed resources, gives them one by itself,
// once to each. The gate opens and closes for it as for any other; but when the
// window is over, suspended or gone, so is what it gave.

// GivesBy are the actions that a window gives by itself to the managed resources
// that it selects; none where it is about anything else. It is never Delete: an
// external object goes because its managed resource is deleted, with a record.
func GivesBy(w *v1alpha1.UpgradeAllowance) []string {
	return slices.DeleteFunc(management.Acting(allowance.ActionsOfWindow(w)), func(a string) bool { return a == management.ActionDelete })
}

// gives reports whether a window gives the resource something now.
func gives(m managed.Resource, now time.Time, w *v1alpha1.UpgradeAllowance) bool {
	return allowance.InForce(w, now) && allowance.Selects(w, m.Object) && len(GivesBy(w)) > 0
}

// giver is the window of a name, where that gives the resource something now.
func (given windowsGiven) giver(m managed.Resource, now time.Time, name string) *v1alpha1.UpgradeAllowance {
	for i := range given.windows {
		if w := &given.windows[i]; w.GetName() == name && gives(m, now, w) {
			return w
		}
	}

	return nil
}

// byWindows adds what windows give by themselves, and takes back what one gave
// that gives nothing any more.
func byWindows(m managed.Resource, given windowsGiven, shared *sharing, now time.Time) (managed.Resource, windowsGiven) {
	if resource.Deleting(m.Object) || m.Record == nil {
		return m, given
	}

	m, given = takeBack(m, given, shared, now)

	// What existed before its managed resource is not to be made anything else.
	if m.Record.State == v1alpha1.GateUngated || managed.Unproven(m.Record) || m.Record.Existed {
		return m, given
	}

	for i := range given.windows {
		w := &given.windows[i]
		if !gives(m, now, w) || opened(m.Record.Windows, w) || slices.ContainsFunc(m.Allowances, givenBy(w.GetName())) || shared.is() {
			continue
		}

		generation := max(resource.Generation(m.Object), m.Consumed()+1)
		m.Allowances = append(slices.Clip(m.Allowances), v1alpha1.Allowance{
			Relation: v1alpha1.RelationExternal, Mutations: GivesBy(w), Generation: generation, ID: allowance.ID(generation, 0),
			Initiator: allowance.InitiatorOfWindow(w.GetName()),
			Source:    v1alpha1.AllowanceSource{Type: v1alpha1.SourceWindow, Name: w.GetName()},
			Trace: []v1alpha1.Hop{{
				Kind: m.Object.GetKind(), Name: m.Object.GetName(), Generation: generation, Field: string(v1alpha1.RelationExternal),
			}},
		})
		given.giving = append(given.giving, v1alpha1.GateWindow{Name: w.GetName(), UID: w.GetUID()})
	}

	return m, given
}

func opened(list []v1alpha1.GateWindow, w *v1alpha1.UpgradeAllowance) bool {
	return slices.ContainsFunc(list, func(o v1alpha1.GateWindow) bool { return o.UID == w.GetUID() })
}

func givenBy(name string) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool { return allowance.OfWindowAlone(a) && a.Source.Name == name }
}

// takeBack takes from the resource what windows gave that give nothing any more,
// and from the gate the actions that were open for nothing else.
func takeBack(m managed.Resource, given windowsGiven, shared *sharing, now time.Time) (managed.Resource, windowsGiven) {
	over := func(a v1alpha1.Allowance) bool {
		return allowance.OfWindowAlone(a) && (given.giver(m, now, a.Source.Name) == nil || shared.twinned())
	}

	rec := *m.Record
	rec.Allowances = slices.DeleteFunc(slices.Clone(rec.Allowances), over)

	var gave []string

	for _, a := range managed.UnderWay(m.Record) {
		if over(a) {
			gave = append(gave, management.Acting(a.Mutations)...)
		}
	}

	for _, a := range m.Allowances {
		if !over(a) {
			continue
		}

		// It did not come to its end, so it may open the gate again.
		given.over = append(given.over, "UpgradeAllowance "+a.Source.Name)
		rec.Windows = slices.DeleteFunc(slices.Clone(rec.Windows), func(o v1alpha1.GateWindow) bool { return o.Name == a.Source.Name })
	}

	if len(rec.Allowances) == len(m.Record.Allowances) && len(given.over) == 0 {
		return m, given
	}

	m.Allowances = slices.DeleteFunc(slices.Clone(m.Allowances), over)
	others := managed.ActionsOf(managed.UnderWay(&rec))
	rec.Actions = slices.DeleteFunc(slices.Clone(rec.Actions), func(action string) bool {
		return slices.Contains(gave, action) && !slices.Contains(others, action)
	})
	m.Record = &rec

	return m, given
}

// overText says why what windows gave is taken back.
func (given windowsGiven) overText() string {
	return fmt.Sprintf("%s gives nothing any more", strings.Join(given.over, ", "))
}

// noteWindows has a record that is written name the windows whose allowances it
// takes up, and leaves out of what is written allowances that it does not.
func noteWindows(m managed.Resource, now time.Time, given windowsGiven, rec *v1alpha1.GateRecord) []v1alpha1.Allowance {
	if m.Record != nil {
		rec.Windows = slices.DeleteFunc(slices.Clone(m.Record.Windows), func(o v1alpha1.GateWindow) bool {
			return !slices.ContainsFunc(given.windows, func(w v1alpha1.UpgradeAllowance) bool {
				return w.GetUID() == o.UID && now.Before(w.Spec.ValidUntil.Time)
			})
		})
	}

	left := m.Allowances

	for _, w := range given.giving {
		if slices.ContainsFunc(rec.Allowances, givenBy(w.Name)) {
			rec.Windows = append(rec.Windows, w)
		} else {
			left = slices.DeleteFunc(slices.Clone(left), givenBy(w.Name))
		}
	}

	return left
}

// windowEnds is how long it is until the first window ends that holds the gate
// open; zero where none does.
func (given windowsGiven) windowEnds(m managed.Resource, now time.Time, by []v1alpha1.Allowance) time.Duration {
	var out time.Duration

	for _, a := range by {
		if !allowance.OfWindowAlone(a) {
			continue
		}

		if w := given.giver(m, now, a.Source.Name); w != nil {
			if left := w.Spec.ValidUntil.Sub(now); out == 0 || left < out {
				out = left
			}
		}
	}

	return out
}

// opensBy are the windows that a record is the first to name.
func (given windowsGiven) opensBy(rec *v1alpha1.GateRecord) []v1alpha1.GateWindow {
	return slices.DeleteFunc(slices.Clone(given.giving), func(w v1alpha1.GateWindow) bool { return !slices.Contains(rec.Windows, w) })
}
