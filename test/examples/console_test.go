// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// A command is one that a README shows, with what one sees.
type command struct {
	// line of the README where it begins.
	line int
	// user who types it: admin, hans or anna.
	user string
	// text is typed after the prompt, without the ends of its lines.
	text string
	// shown are lines that are seen, in this order and maybe among others.
	shown []string
}

// reads reports whether it can be repeated until it shows what it should. A diff
// reads an object twice, and shows what somebody wrote in between; what is decided is
// in the log a moment later.
func (c command) reads() bool {
	return regexp.MustCompile(`^(kubectl (-n \S+ )?(get|diff|kausality (trace|can|explain|pending|replay))|\.local/psql .*SELECT) `).MatchString(c.text)
}

// patient is what is typed, with as much time as a test has for what a person
// gives up on sooner.
func (c command) patient() string {
	return regexp.MustCompile(`--timeout=\S+`).ReplaceAllString(c.text, "--timeout="+patience.Limit.String())
}

// fails reports whether it is meant to: what is refused, or found, is said last, and so is
// what differs, or that somebody may not.
func (c command) fails() bool {
	return len(c.shown) > 0 && regexp.MustCompile(`^(Error from server|error: |[<>] |no$)`).MatchString(c.shown[len(c.shown)-1])
}

// missing returns the first line that is to be seen and is not; empty if all
// are. Of spaces one is as good as many, and ... stands for anything.
func (c command) missing(output string) string {
	lines := strings.Split(output, "\n")

	for _, want := range c.shown {
		i := 0
		for i < len(lines) && !matches(want, lines[i]) {
			i++
		}

		if i == len(lines) {
			return want
		}

		lines = lines[i+1:]
	}

	return ""
}

// untold returns a warning of ours that is seen and not shown; empty if there is
// none.
func (c command) untold(output string) string {
	for _, said := range regexp.MustCompile(`(?m)^Warning: \S+ ".*$`).FindAllString(output, -1) {
		if !slices.ContainsFunc(c.shown, func(want string) bool { return matches(want, said) }) {
			return said
		}
	}

	return ""
}

func matches(want, line string) bool {
	parts := strings.Split(strings.Join(strings.Fields(want), " "), "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}

	return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(strings.Join(strings.Fields(line), " "))
}

// readConsole returns the commands of the console blocks of a README.
func readConsole(file string) ([]command, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var (
		out           []command
		within, going bool
	)

	prompt := regexp.MustCompile(`^(admin|hans|anna)\$ (.*)$`)

	for i, line := range strings.Split(string(raw), "\n") {
		m := prompt.FindStringSubmatch(line)

		switch {
		case strings.HasPrefix(line, "```"):
			within, going = line == "```console", false
		case !within:
		case going:
			last := &out[len(out)-1]
			last.text, going = strings.CutSuffix(last.text+strings.TrimSpace(line), `\`)
		case m != nil:
			c := command{line: i + 1, user: m[1]}
			c.text, going = strings.CutSuffix(m[2], `\`)
			out = append(out, c)
		case len(out) == 0:
			return nil, fmt.Errorf("cannot read %q: line %d shows what no command says", file, i+1)
		default:
			last := &out[len(out)-1]
			last.shown = append(last.shown, line)
		}
	}

	return out, nil
}
