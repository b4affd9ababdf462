// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is as much of Grafana's model as is checked.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct {
			W int `json:"w"`
			X int `json:"x"`
		} `json:"gridPos"`
		Targets []struct {
			RefID        string `json:"refId"`
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

var (
	variable = regexp.MustCompile(`\$\{?(\w+)\}?`)
	values   = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
)

// TestTheDashboardShowsOnlyWhatIsExported parses every query, and finds every
// metric, label and variable in it.
func TestTheDashboardShowsOnlyWhatIsExported(t *testing.T) {
	raw, err := os.ReadFile("../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}

	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil || d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Fatalf("dashboard %q: %v", d.Title, err)
	}

	series := exported(t)
	variables := append(make([]string, 0, 2+len(d.Templating.List)), "__rate_interval", "__all")

	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)

		if m := values.FindStringSubmatch(v.Definition); m != nil {
			known(t, "sum by ("+m[2]+") ("+fill(m[1])+")", series)
		} else if v.Definition != "" {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}

	for _, m := range variable.FindAllStringSubmatch(string(raw), -1) {
		if !slices.Contains(variables, m[1]) {
			t.Errorf("there is no variable %s", m[0])
		}
	}

	shown := map[string]bool{}
	ids := map[int]bool{}

	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || (p.Type != "row") != (len(p.Targets) > 0) {
			t.Errorf("panel %d %q: %+v", p.ID, p.Title, p)
		}

		ids[p.ID] = true

		for _, target := range p.Targets {
			for _, name := range known(t, fill(target.Expr), series) {
				shown[strings.TrimSuffix(name, "_bucket")] = true
			}

			for _, label := range used(target.LegendFormat) {
				if !keeps(target.Expr, label) {
					t.Errorf("panel %q: %s does not keep label %s", p.Title, target.Expr, label)
				}
			}
		}
	}

	if len(shown) < 15 {
		t.Errorf("only %d metrics are shown", len(shown))
	}
}

// fill puts something in the place of variables.
func fill(query string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(query, "$__rate_interval", "5m"), "any")
}
