// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vuln reads what govulncheck -format json prints, and prints each vulnerability that a program calls. It exits
// with 1 if one of them is in a module. Those of Go's standard library depend on the Go that builds.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// stdlib is the name of Go's standard library in place of a module's.
const stdlib = "stdlib"

// message is one of the stream. Source: golang.org/x/vuln v1.9.0, internal/govulncheck, Message.
type message struct {
	OSV     *osv     `json:"osv"`
	Finding *finding `json:"finding"`
}

type osv struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

type finding struct {
	OSV   string  `json:"osv"`
	Fixed string  `json:"fixed_version"`
	Trace []frame `json:"trace"`
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Function string `json:"function"`
}

// errVulnerable is the cause where a module has to be updated.
var errVulnerable = errors.New("update these modules, or take the calls away")

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(1)
	}
}

// run prints a line for each vulnerability that is called.
func run(in io.Reader, out io.Writer) error {
	summaries, lines := map[string]string{}, map[string]bool{}
	modules, read := 0, 0

	for stream := json.NewDecoder(in); ; read++ {
		var m message

		if err := stream.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("cannot read what govulncheck prints: %w", err)
		}

		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}

		// The first frame is the vulnerable symbol; without a function it is imported and not called.
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue
		}

		at := m.Finding.Trace[0]
		line := fmt.Sprintf("%s: %s %s, fixed in %s: %s", m.Finding.OSV, at.Module, at.Version,
			cmp.Or(m.Finding.Fixed, "no version"), summaries[m.Finding.OSV])

		if !lines[line] && at.Module != stdlib {
			modules++
		}

		lines[line] = true
	}

	if read == 0 {
		return errors.New("govulncheck prints nothing") //nolint:err113 // Nobody looks at it.
	}

	sorted := make([]string, 0, len(lines))
	for line := range lines {
		sorted = append(sorted, line)
	}

	slices.Sort(sorted)

	for _, line := range sorted {
		_, _ = fmt.Fprintln(out, line)
	}

	_, err := fmt.Fprintf(out, "%d vulnerabilities of modules are called, %d of Go's standard library\n", modules, len(lines)-modules)
	if modules > 0 {
		err = errVulnerable
	}

	return err
}
