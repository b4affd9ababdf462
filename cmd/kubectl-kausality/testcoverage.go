// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// errPercent is the cause when no coverage could be so.
var errPercent = errors.New("give a percentage, from 0 to 100")

// coverageText writes a coverage for people: what no test has tried, and how much there is of what.
func coverageText(c policytest.Coverage) string {
	var out strings.Builder

	for _, p := range c.Policies {
		var lacking strings.Builder

		for _, i := range p.Items {
			if !i.Covered {
				fmt.Fprintf(&lacking, "       %s (%s): %s\n", i.Field, i.Text, i.Lacks())
			}
		}

		if lacking.Len() > 0 {
			fmt.Fprintf(&out, "TEST   %s: AllowancePolicy %q\n%s", p.Place, p.Name, lacking.String())
		}
	}

	fmt.Fprintf(&out, "coverage: %d%%, %d of %d items of %d policies\n", c.Percent, c.Covered, c.Items, len(c.Policies))

	return out.String()
}

// lowCoverageError is what ends the command when tests try too little.
type lowCoverageError struct{ percent, want int }

func (e lowCoverageError) Error() string {
	return fmt.Sprintf("coverage is %d%%, and is to be at least %d%%", e.percent, e.want)
}

func (e lowCoverageError) Unwrap() error { return errFinding }
