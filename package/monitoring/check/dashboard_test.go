// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

var (
	variable = regexp.MustCompile(`\$\{?(\w+)\}?`)
	values   = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
)

// errPanel is the cause where Grafana has no such panel.
var errPanel = errors.New("no panel of this type comes with Grafana")

// board reads a dashboard with Grafana's own model: what that does not know, has
// as another type, or does not allow is an error, in panels and queries, too.
func board(raw []byte) (*dashboard.Dashboard, error) {
	plugins.RegisterDefaultPlugins()

	d := &dashboard.Dashboard{}
	if err := d.UnmarshalJSONStrict(raw); err != nil {
		return nil, fmt.Errorf("cannot read dashboard: %w", err)
	}

	for _, p := range panels(d) {
		if _, ok := cog.ConfigForPanelcfgVariant(p.Type); !ok {
			return nil, fmt.Errorf("panel %q is a %q: %w", *p.Title, p.Type, errPanel)
		}
	}

	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("dashboard is not valid: %w", err)
	}

	return d, nil
}

// panels are all that show something.
func panels(d *dashboard.Dashboard) []dashboard.Panel {
	var out []dashboard.Panel

	for _, p := range d.Panels {
		if p.Panel != nil {
			out = append(out, *p.Panel)
		} else if p.RowPanel != nil {
			out = append(out, p.RowPanel.Panels...)
		}
	}

	return out
}

func read(t *testing.T) []byte {
	t.Helper()

	raw, err := os.ReadFile("../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// TestGrafanaTakesTheDashboard as it is, and not if something is wrong in it.
func TestGrafanaTakesTheDashboard(t *testing.T) {
	raw := string(read(t))

	if _, err := board([]byte(raw)); err != nil {
		t.Error(err)
	}

	for name, change := range map[string][2]string{
		"unknown field of the dashboard": {`"refresh": "1m"`, `"refreshed": "1m"`},
		"unknown field of a panel":       {`"gridPos"`, `"gridPosition"`},
		"unknown field of a query":       {`"legendFormat"`, `"legend"`},
		"unknown field of a variable":    {`"includeAll"`, `"all"`},
		"wrong type":                     {`"schemaVersion": 39`, `"schemaVersion": "39"`},
		"too wide":                       {`"w": 24`, `"w": 25`},
		"unknown type of panel":          {`"type": "timeseries"`, `"type": "timeserie"`},
	} {
		broken := strings.Replace(raw, change[0], change[1], 1)
		if broken == raw {
			t.Errorf("%s: there is no %s", name, change[0])
		}

		if _, err := board([]byte(broken)); err == nil {
			t.Errorf("%s: Grafana takes it", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestTheDashboardShowsOnlyWhatIsExported parses every query, and finds every
// metric, label and variable in it.
func TestTheDashboardShowsOnlyWhatIsExported(t *testing.T) {
	raw := read(t)

	d, err := board(raw)
	if err != nil {
		t.Fatal(err)
	}

	if d.Uid == nil || d.Title == nil || d.SchemaVersion == 0 {
		t.Errorf("it has no name: %+v", d)
	}

	series := exported(t)
	variables := append(make([]string, 0, 2+len(d.Templating.List)), "__rate_interval", "__all")

	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)

		if v.Definition == nil {
			continue
		}

		if m := values.FindStringSubmatch(*v.Definition); m != nil {
			known(t, "sum by ("+m[2]+") ("+fill(m[1])+")", series)
		} else {
			t.Errorf("variable %s: %s", v.Name, *v.Definition)
		}
	}

	for _, m := range variable.FindAllStringSubmatch(string(raw), -1) {
		if !slices.Contains(variables, m[1]) {
			t.Errorf("there is no variable %s", m[0])
		}
	}

	unique(t, d)

	shown := map[string]bool{}

	for _, p := range panels(d) {
		for _, name := range shows(t, p, series) {
			shown[strings.TrimSuffix(name, "_bucket")] = true
		}
	}

	if len(shown) < 15 {
		t.Errorf("only %d metrics are shown", len(shown))
	}
}

// unique checks that no two panels have one number.
func unique(t *testing.T, d *dashboard.Dashboard) {
	t.Helper()

	ids := map[uint32]bool{}

	for _, p := range d.Panels {
		var id uint32
		if p.RowPanel != nil {
			id = p.RowPanel.Id
		} else if p.Panel.Id != nil {
			id = *p.Panel.Id
		}

		if id == 0 || ids[id] {
			t.Errorf("panel %d is there twice, or has no number", id)
		}

		ids[id] = true
	}
}

// shows returns the metrics that a panel shows.
func shows(t *testing.T, p dashboard.Panel, series map[string][]string) []string {
	t.Helper()

	if p.Title == nil || *p.Title == "" || p.GridPos == nil || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
		t.Errorf("panel %+v has no title, place or query", p)

		return nil
	}

	var out []string

	for _, target := range p.Targets {
		q, ok := target.(*prometheus.Dataquery)
		if !ok {
			t.Errorf("panel %q: %T is no query of Prometheus", *p.Title, target)

			continue
		}

		out = append(out, known(t, fill(q.Expr), series)...)

		if q.LegendFormat == nil {
			continue
		}

		for _, label := range used(*q.LegendFormat) {
			if !keeps(q.Expr, label) {
				t.Errorf("panel %q: %s does not keep label %s", *p.Title, q.Expr, label)
			}
		}
	}

	return out
}

// fill puts something in the place of variables.
func fill(query string) string {
	return variable.ReplaceAllString(strings.ReplaceAll(query, "$__rate_interval", "5m"), "any")
}
