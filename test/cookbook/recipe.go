// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/play"
)

// A Recipe is one of the page's: what is below a heading of the third level.
type Recipe struct {
	// Heading, and the anchor that it makes.
	Heading, Anchor string
	// Line of the page before the first one of Text, counted from 1.
	Line int
	// Text of the YAML block.
	Text string
}

// level is that of the headings of recipes.
const level = 3

// Read reads the recipes of a page, in their order. It is an error where a heading has no YAML block, or
// several, where a block is under no heading, and where two recipes have one heading.
func Read(page string) ([]Recipe, error) {
	var out []Recipe

	seen := map[string]bool{}

	for _, s := range play.Sections(page) {
		r := Recipe{Heading: s.Heading, Anchor: play.Anchor(s.Heading)}

		if s.Level == level && seen[r.Anchor] {
			return nil, fmt.Errorf("line %d: there is another recipe %q", s.Line, r.Heading)
		}

		for _, b := range s.Blocks {
			if b.Language != "yaml" {
				continue
			}

			if s.Level != level || r.Text != "" {
				return nil, fmt.Errorf("line %d: a YAML block that is not the only one of a recipe", b.Line)
			}

			r.Line, r.Text = b.Line, b.Text
		}

		if s.Level == level {
			seen[r.Anchor] = true
			out = append(out, r)
		}
	}

	for _, r := range out {
		if r.Text == "" {
			return nil, fmt.Errorf("recipe %q has no YAML block", r.Heading)
		}
	}

	return out, nil
}

// Times that a recipe names.
var (
	// moments are points in time.
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	// zones are where conditions read the hour.
	zones = regexp.MustCompile(`now(\.get\w+)\('([A-Z][a-z]+/[A-Z][a-z]+)'\)`)
)

// Moved is the recipe as it is played now in place of another time: the points in time that it names are as
// much later, and the hour is read in a zone in which it is as late as it was then.
func (r Recipe) Moved(then, now time.Time) (Recipe, error) {
	var failed error

	by := now.Sub(then)

	r.Text = moments.ReplaceAllStringFunc(r.Text, func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		failed = errors.Join(failed, err)

		return at.Add(by).UTC().Format(time.RFC3339)
	})

	r.Text = zones.ReplaceAllStringFunc(r.Text, func(text string) string {
		m := zones.FindStringSubmatch(text)

		zone, err := time.LoadLocation(m[2])
		if err != nil {
			failed = errors.Join(failed, err)

			return text
		}

		_, seconds := then.In(zone).Zone()

		return fmt.Sprintf("(now + duration('%ds'))%s()", seconds-int(by.Seconds()), m[1])
	})

	return r, failed
}
