// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxInside is the most fields of one managed resource that a finding names.
const maxInside = 5

// outside checks for managed resources whose external object is not what their spec
// says: the gate did not let out what somebody stored. Crossplane and the provider say
// of them that all is well.
func outside(s *State) []Finding {
	var out []Finding

	for _, u := range s.Managed {
		list, err := gate.InsideOf(u)
		if err != nil {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: err.Error(),
				Why: "whether its external object is what its spec says is not known", Remedy: "see the manager's log and events",
			})

			continue
		}

		texts := make([]string, 0, maxInside)

		var since time.Time

		for _, in := range list[:min(len(list), maxInside)] {
			text := decision.DescribeInside(decision.HeldBetween(in.Change, "", u.Object))
			texts = append(texts, text+": it "+decision.StoredBy(in.User, in.Since))
			since = in.Since
		}

		if more := len(list) - len(texts); more > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", more))
		}

		// What is on its way is not there yet.
		if len(list) == 0 || !since.IsZero() && s.Now.Sub(since) < stays {
			continue
		}

		out = append(out, Finding{
			Severity: Warning, Object: name(u), What: strings.Join(texts, "; "),
			Why: "its gate did not let it out, and it is put back before the gate opens for anything else",
			Remedy: "take it back, or have it set back and set again by who may by a policy that allows External Update with it: " +
				"kubectl kausality trace " + resource.Argument(u) + " says which",
		})
	}

	return out
}
