// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reason matches the reasons of our events.
var reason = regexp.MustCompile(`^Kausality[A-Z][A-Za-z]+$`)

// event is what is told by a reason.
type event struct{ typ, on, text string }

// eventTexts describe the reasons that the code has.
func eventTexts() map[string]event {
	const warning, normal, window, managed = "Warning", "Normal", "UpgradeAllowance", "managed resource"

	return map[string]event{
		"KausalityHeld":                     {warning, "the object, its parent, XR, Claim", "Changes were held back: fields, values, what is missing."},
		"KausalityDenied":                   {warning, "the object, its parent", "A request was refused, and why, of each field."},
		"KausalityInput":                    {warning, "XR", "The function's input, a policy or a window could not be used."},
		"KausalityBaseline":                 {normal, "XR", "In the function's first run: fields that differ from what is stored and count as asked for."},
		"KausalityLeft":                     {normal, "XR", "A field is left to others, such as replicas to an autoscaler."},
		"KausalityNotSettled":               {warning, "XR", "It has been ready for --initializing-limit and counts as settled: what did not settle."},
		"KausalityGateOpen":                 {normal, managed, "Its gate was opened: the actions, and who asked for it."},
		"KausalityGateClosed":               {normal, managed, "Its gate was closed, and why."},
		"KausalityGateOverdue":              {warning, managed, "Its gate is open for longer than its policy, or --max-open, says."},
		"KausalityCloseWhen":                {warning, managed, "The closeWhen expression of a policy failed."},
		"KausalityAnnotation":               {warning, managed, "An annotation of ours does not parse."},
		"KausalityPutBack":                  {warning, managed, "What nobody allowed was put back before its gate opens."},
		"KausalityUngated":                  {warning, managed, "It has no gate: its provider has no management policies, or the function is in Audit."},
		"KausalityManagedResourceOrphaned":  {warning, "managed resource, XR", "It stays, for nobody asked to delete it, and its owner is gone."},
		"KausalityExternalResourceOrphaned": {warning, "the managed resource, its record", "It is gone, its external object stays, on record."},
		"KausalityForgotten":                {warning, "XR, managed resource", "The XR does not refer to it any more, and is made of it: what to do."},
		"KausalityExceptionEnds":            {warning, "Enforcement", "An exception ends within a day, or has ended."},
		"KausalityShardUnattended":          {warning, "Namespace", "No manager looks after the shard its label names."},
		"KausalityWindowStarted":            {normal, window, "It became active for the first time."},
		"KausalityWindowUsed":               {normal, window, "It allowed a mutation for the first time."},
		"KausalityWindowEnded":              {normal, window, "It has ended."},
		"KausalityWindowPaused":             {warning, window, "What activateWhen asks for is not so any more; or, of type Normal, spec.suspend was set."},
		"KausalityWindowResumed":            {normal, window, "It is active again."},
	}
}

// writeEvents writes the reasons of events; it fails if they are not those of
// the code.
func writeEvents(out *bytes.Buffer) error {
	found, err := reasons()
	if err != nil {
		return err
	}

	texts := eventTexts()

	for _, r := range found {
		if _, ok := texts[r]; !ok {
			return fmt.Errorf("event %s: %w", r, errUndescribed)
		}
	}

	fmt.Fprint(out, "\n# Events\n\nReasons of the events that Kausality records, and that Crossplane records for its function.\n\n"+
		"| Reason | Type | On | Meaning |\n| --- | --- | --- | --- |\n")

	for _, r := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(found, r) {
			return fmt.Errorf("event %s is not in the code: %w", r, errUndescribed)
		}

		e := texts[r]
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", r, e.typ, cell(e.on), cell(e.text))
	}

	return nil
}

// reasons are the literals of the code that look like one, without tests.
func reasons() ([]string, error) {
	var out []string

	for _, dir := range []string{"gatecontroller", "gatecontroller/*", "webhook", "fn", "engine/upgradeallowance"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, fmt.Errorf("cannot list %q: %w", dir, err)
		}

		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}

			found, err := reasonsIn(name)
			if err != nil {
				return nil, err
			}

			out = append(out, found...)
		}
	}

	slices.Sort(out)

	return slices.Compact(out), nil
}

// reasonsIn are those of one file.
func reasonsIn(name string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the sources: %w", err)
	}

	var out []string

	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && reason.MatchString(text) {
				out = append(out, states(text)...)
			}
		}

		return true
	})

	return out, nil
}

// states are the reasons that a literal stands for: the one about gates is put
// together with the gate's state.
func states(text string) []string {
	if text == "KausalityGate" {
		return []string{text + "Open", text + "Closed"}
	}

	return []string{text}
}
