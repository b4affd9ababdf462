// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// eventSource has the reasons of our events, with what there is to say of each.
const eventSource = "apis/v1alpha1/events.go"

// eventComment matches that of a reason: its type, what it is on, and what it means.
var eventComment = regexp.MustCompile(`^\w+ is a (Warning|Normal) event on: ([^.]+)\. (.+)$`)

// event is one reason, and what there is to say of it.
type event struct{ reason, typ, on, text string }

// writeEvents writes the reasons of events.
func writeEvents(out *bytes.Buffer) error {
	events, err := eventsIn(eventSource)
	if err != nil {
		return err
	}

	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.reason, b.reason) })

	fmt.Fprint(out, "\n# Events\n\nReasons of the events that Kausality records, and that Crossplane records for its function.\n\n"+
		"| Reason | Type | On | Meaning |\n| --- | --- | --- | --- |\n")

	for _, e := range events {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", e.reason, e.typ, cell(e.on), cell(e.text))
	}

	return nil
}

// eventsIn are the constants of a file that are reasons of events.
func eventsIn(name string) ([]event, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("cannot read the sources: %w", err)
	}

	var (
		out   []event
		wrong error
	)

	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}

		e, err := eventOf(spec)
		if err != nil {
			wrong = err
		}

		out = append(out, e)

		return true
	})

	return out, wrong
}

// eventOf reads a constant and its comment.
func eventOf(spec *ast.ValueSpec) (event, error) {
	lit, ok := spec.Values[0].(*ast.BasicLit)
	said := eventComment.FindStringSubmatch(strings.Join(strings.Fields(spec.Doc.Text()), " "))

	if !ok || said == nil {
		return event{}, fmt.Errorf("event %s: %w", spec.Names[0].Name, errUndescribed)
	}

	reason, err := strconv.Unquote(lit.Value)
	if err != nil {
		return event{}, fmt.Errorf("event %s: %w", spec.Names[0].Name, err)
	}

	return event{reason: reason, typ: said[1], on: said[2], text: said[3]}, nil
}
