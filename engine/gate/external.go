// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// result says whether the status shows that the change is there, and what is
// missing if it shows that it is not. That a new resource is ready shows that
// it was made, not that a change since has been.
func (p *planner) result() (shown bool, missing string) {
	if c, ok := resource.ConditionOf(p.u, resource.ConditionReady); p.record.Initial && (!ok || !c.True()) {
		return false, "waiting for the resource to be ready for the first time"
	}

	shown, differs := p.compareExternal()
	if differs != "" {
		return shown, fmt.Sprintf("waiting for the external system to show the new value of %s", differs)
	}

	made := p.record.Initial && !slices.ContainsFunc(p.allowedFields(), func(f string) bool { return strings.HasPrefix(f, "spec.") })

	return shown || made, ""
}

// compareExternal compares the allowed fields with status.atProvider: whether
// it shows any of them, and the first that has another value. What the spec no
// longer has cannot be compared: it counts as not shown.
func (p *planner) compareExternal() (shown bool, differs string) {
	paved := fieldpath.Pave(p.u.Object)

	for _, field := range p.allowedFields() {
		segments, err := fieldpath.Parse(field)
		if err != nil || len(segments) < 3 || segments[0].Field != "spec" || segments[1].Field != "forProvider" {
			continue
		}

		want, err := paved.GetValue(field)
		if err != nil {
			continue
		}

		at := slices.Concat(fieldpath.Segments{fieldpath.Field("status"), fieldpath.Field("atProvider")}, segments[2:])

		actual, err := paved.GetValue(at.String())
		if err != nil {
			continue
		}

		some, equal := compare(want, actual)
		if !equal {
			return true, field
		}

		shown = shown || some
	}

	return shown, ""
}

// compare says whether an actual value shows anything of a wanted one, and
// whether all it shows is equal. Providers add to maps (tags, defaults) and
// leave out what is secret.
func compare(want, actual any) (shown, equal bool) {
	if want == nil {
		return false, true
	}

	wanted, isMap := want.(map[string]any)
	have, both := actual.(map[string]any)

	if !isMap || !both {
		return true, change.Equal(want, actual)
	}

	for key, w := range wanted {
		a, ok := have[key]
		if !ok {
			continue
		}

		some, equal := compare(w, a)
		if !equal {
			return true, false
		}

		shown = shown || some
	}

	return shown, true
}

// allowedFields are the fields whose change the gate is open for: those that
// the recorded allowances name, and those that the resource's trace records for
// their generations.
func (p *planner) allowedFields() []string {
	var (
		fields      []string
		generations []int64
	)

	for _, a := range p.record.Allowances {
		if !p.underWay(a) {
			continue
		}

		generations = append(generations, a.Generation)
		if n := len(a.Trace); n > 0 {
			fields = append(fields, a.Trace[n-1].Field)
		}
	}

	entries, err := allowance.ParseTrace(p.u)
	if err != nil {
		return fields
	}

	for _, e := range entries {
		if slices.Contains(generations, e.Generation) && !slices.Contains(fields, e.Field) {
			fields = append(fields, e.Field)
		}
	}

	return fields
}
