// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
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

// What a page is made of.
const (
	heading = "### "
	opening = "```yaml"
	fence   = "```"
)

// Read reads the recipes of a page, in their order. It is an error where a heading has no YAML block, or
// several, where a block is under no heading, and where two recipes have one heading.
func Read(page string) ([]Recipe, error) {
	var out []Recipe

	seen := map[string]bool{}
	lines := strings.SplitAfter(page, "\n")

	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])

		switch {
		case strings.HasPrefix(line, heading):
			r := Recipe{Heading: strings.TrimPrefix(line, heading)}
			if r.Anchor = anchor(r.Heading); seen[r.Anchor] {
				return nil, fmt.Errorf("line %d: there is another recipe %q", i+1, r.Heading)
			}

			seen[r.Anchor] = true
			out = append(out, r)
		case strings.HasPrefix(line, fence):
			text := until(lines[i+1:], fence)

			if line == opening {
				if len(out) == 0 || out[len(out)-1].Text != "" {
					return nil, fmt.Errorf("line %d: a YAML block that is not the only one of a recipe", i+1)
				}

				out[len(out)-1].Line, out[len(out)-1].Text = i+1, strings.Join(text, "")
			}

			i += len(text) + 1
		}
	}

	for _, r := range out {
		if r.Text == "" {
			return nil, fmt.Errorf("recipe %q has no YAML block", r.Heading)
		}
	}

	return out, nil
}

// until are the lines before the one that ends them.
func until(lines []string, end string) []string {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == end })
	if i < 0 {
		return lines
	}

	return lines[:i]
}

// unlinked is what anchors leave out of headings.
var unlinked = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor is what a heading is linked by.
func anchor(text string) string {
	return strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// Times that a recipe names.
var (
	// moments are points in time.
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	// zones are where conditions read the hour.
	zones = regexp.MustCompile(`'[A-Z][a-z]+/[A-Z][a-z]+'`)
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
		zone, err := time.LoadLocation(strings.Trim(text, "'"))
		if err != nil {
			failed = errors.Join(failed, err)

			return text
		}

		_, seconds := then.In(zone).Zone()

		return "'" + offset(time.Duration(seconds)*time.Second-by) + "'"
	})

	return r, failed
}

// offset is that of a zone, as CEL has it.
func offset(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}

	return fmt.Sprintf("%s%02d:%02d", sign, int(d.Hours()), int(d.Minutes())%60)
}
