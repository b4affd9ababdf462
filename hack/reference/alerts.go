// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

const alertSource = "package/monitoring/rules.yaml"

// rules are as much of Prometheus' rules as is written; a test in
// package/monitoring/check reads them in full.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// writeAlerts writes a section for each alert, to which its runbook_url leads.
func writeAlerts(out *bytes.Buffer) error {
	raw, err := os.ReadFile(alertSource)
	if err != nil {
		return fmt.Errorf("cannot read alerts: %w", err)
	}

	var r rules
	if err := yaml.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("cannot read alerts: %w", err)
	}

	fmt.Fprintf(out, "\n# Alerts\n\nPrometheus rules are in `%s`, a Grafana dashboard in `package/monitoring/dashboard.json`.\n", alertSource)

	for _, g := range r.Groups {
		for _, a := range g.Rules {
			fmt.Fprintf(out, "\n## %s\n\n%s: %s\n\n", a.Alert, title(a.Labels["severity"]), quiet(a.Annotations["summary"]))
			fmt.Fprintf(out, "**Why it matters.** %s\n\n**What to do.** %s\n\n", a.Annotations["description"], a.Annotations["remedy"])
			fmt.Fprintf(out, "```promql\n%s\n```\n", a.Expr)

			if a.For != "" {
				fmt.Fprintf(out, "\nFor %s.\n", a.For)
			}
		}
	}

	return nil
}

// quiet puts words in the place of a summary's templates.
func quiet(text string) string {
	return strings.NewReplacer("{{ $value }}", "N", "{{ $labels.", "`", " }}", "`").Replace(text)
}

func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
