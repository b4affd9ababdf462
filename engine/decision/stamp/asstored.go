// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"maps"
	"slices"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keepAsStored leaves a managed resource that has a gate as it is stored where what is asked for differs in nothing but nulls, and
// empty maps and lists. Providers take these away, Crossplane asks for them again, nobody notes that, and what nobody noted is not
// stored.
func keepAsStored(o request.Objects, outside request.External, findings []finding.Finding, s *Stamped) {
	if !outside.Gated {
		return
	}

	was, is := resource.Map(o.Old.Object, "spec"), resource.Map(s.Object.Object, "spec")

	for _, field := range []string{"forProvider", "initProvider"} {
		noted := slices.ContainsFunc(findings, func(f finding.Finding) bool {
			return f.Verdict != finding.Unallowed && request.Under(f.Change, "spec", field)
		})

		if noted || change.Equal(was[field], is[field]) || !change.Equal(filled(was[field]), filled(is[field])) {
			continue
		}

		if is = maps.Clone(is); was[field] == nil {
			delete(is, field)
		} else {
			is[field] = was[field]
		}

		s.Object.Object["spec"] = is
		s.Kept = append(s.Kept, "spec."+field)
	}
}

// filled is a value without nulls, and without maps and lists that have nothing in them; nil for such a one itself. Elements of lists
// stay: they have a place.
func filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}

		for key, value := range v {
			if value = filled(value); value != nil {
				out[key] = value
			}
		}

		if len(out) > 0 {
			return out
		}

		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}

		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(v[i])
		}

		return out
	default:
		return v
	}
}
