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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

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
	return slices.DeleteFunc(Acting(allowance.ActionsOfWindow(w)), func(a string) bool { return a == ActionDelete })
}

// gives reports whether a window gives the resource something now.
func (x windowing) gives(w *v1alpha1.UpgradeAllowance) bool {
	return allowance.InForce(w, x.now) && allowance.Selects(w, x.u) && len(GivesBy(w)) > 0
}

// giver is the window of a name, where that gives the resource something now.
func (x windowing) giver(name string) *v1alpha1.UpgradeAllowance {
	for i := range x.opts.Windows {
		if w := &x.opts.Windows[i]; w.GetName() == name && x.gives(w) {
			return w
		}
	}

	return nil
}

// byWindows adds what windows give by themselves, and takes back what one gave
// that gives nothing any more.
func (x windowing) byWindows() {
	if resource.Deleting(x.u) || x.record == nil {
		return
	}

	x.takeBack()

	// What existed before its managed resource is not to be made anything else.
	if x.record.State == v1alpha1.GateUngated || unproven(x.record) || x.record.Existed {
		return
	}

	for i := range x.opts.Windows {
		w := &x.opts.Windows[i]
		if !x.gives(w) || opened(x.record.Windows, w) || slices.ContainsFunc(x.allowances, givenBy(w.GetName())) || x.sharing() {
			continue
		}

		generation := max(resource.Generation(x.u), x.consumed()+1)
		x.allowances = append(slices.Clip(x.allowances), v1alpha1.Allowance{
			Relation: v1alpha1.RelationExternal, Mutations: GivesBy(w), Generation: generation, ID: allowance.ID(generation, 0),
			Initiator: allowance.InitiatorOfWindow(w.GetName()),
			Source:    v1alpha1.AllowanceSource{Type: v1alpha1.SourceWindow, Name: w.GetName()},
			Trace: []v1alpha1.Hop{{
				Kind: x.u.GetKind(), Name: x.u.GetName(), Generation: generation, Field: string(v1alpha1.RelationExternal),
			}},
		})
		x.giving = append(x.giving, v1alpha1.GateWindow{Name: w.GetName(), UID: w.GetUID()})
	}
}

func opened(list []v1alpha1.GateWindow, w *v1alpha1.UpgradeAllowance) bool {
	return slices.ContainsFunc(list, func(o v1alpha1.GateWindow) bool { return o.UID == w.GetUID() })
}

func givenBy(name string) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool { return allowance.OfWindowAlone(a) && a.Source.Name == name }
}

// takeBack takes from the resource what windows gave that give nothing any more,
// and from the gate the actions that were open for nothing else.
func (x windowing) takeBack() {
	over := func(a v1alpha1.Allowance) bool {
		return allowance.OfWindowAlone(a) && (x.giver(a.Source.Name) == nil || x.twinned())
	}

	rec := *x.record
	rec.Allowances = slices.DeleteFunc(slices.Clone(rec.Allowances), over)

	var given []string

	for _, a := range underWay(x.record) {
		if over(a) {
			given = append(given, Acting(a.Mutations)...)
		}
	}

	for _, a := range x.allowances {
		if !over(a) {
			continue
		}

		// It did not come to its end, so it may open the gate again.
		x.over = append(x.over, "UpgradeAllowance "+a.Source.Name)
		rec.Windows = slices.DeleteFunc(slices.Clone(rec.Windows), func(o v1alpha1.GateWindow) bool { return o.Name == a.Source.Name })
	}

	if len(rec.Allowances) == len(x.record.Allowances) && len(x.over) == 0 {
		return
	}

	x.allowances = slices.DeleteFunc(slices.Clone(x.allowances), over)
	others := actionsOf(underWay(&rec))
	rec.Actions = slices.DeleteFunc(slices.Clone(rec.Actions), func(action string) bool {
		return slices.Contains(given, action) && !slices.Contains(others, action)
	})
	x.record = &rec
}

// overText says why what windows gave is taken back.
func (x windowing) overText() string {
	return fmt.Sprintf("%s gives nothing any more", strings.Join(x.over, ", "))
}

// noteWindows has a record that is written name the windows whose allowances it
// takes up, and leaves out of what is written allowances that it does not.
func (x windowing) noteWindows(rec *v1alpha1.GateRecord) []v1alpha1.Allowance {
	if x.record != nil {
		rec.Windows = slices.DeleteFunc(slices.Clone(x.record.Windows), func(o v1alpha1.GateWindow) bool {
			return !slices.ContainsFunc(x.opts.Windows, func(w v1alpha1.UpgradeAllowance) bool {
				return w.GetUID() == o.UID && x.now.Before(w.Spec.ValidUntil.Time)
			})
		})
	}

	left := x.allowances

	for _, w := range x.giving {
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
func (x windowing) windowEnds(by []v1alpha1.Allowance) time.Duration {
	var out time.Duration

	for _, a := range by {
		if !allowance.OfWindowAlone(a) {
			continue
		}

		if w := x.giver(a.Source.Name); w != nil {
			if left := w.Spec.ValidUntil.Sub(x.now); out == 0 || left < out {
				out = left
			}
		}
	}

	return out
}

// opensBy are the windows that a record is the first to name.
func (x windowing) opensBy(rec *v1alpha1.GateRecord) []v1alpha1.GateWindow {
	return slices.DeleteFunc(slices.Clone(x.giving), func(w v1alpha1.GateWindow) bool { return !slices.Contains(rec.Windows, w) })
}

// driftShown is the first field in which the external system is shown to differ
// from the spec; empty for none. Where a window holds the gate open by itself that
// is waited for, and the gate settles then: what a provider wants besides is not
// to be seen.
func (x windowing) driftShown() string {
	if shown, _ := compare(resource.Map(x.u.Object, "spec", "forProvider"), resource.Map(x.u.Object, "status", "atProvider")); !shown {
		return ""
	}

	if differs := Differing(x.u); len(differs) > 0 {
		return differs[0].Field
	}

	return ""
}
