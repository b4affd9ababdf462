// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Admin is the administrator of the cluster. So is the empty user.
const Admin = "admin"

// errOther is the cause where something else is seen than the page shows.
var errOther = errors.New("not as shown")

// A Command is one that a user types, with what they see.
type Command struct {
	// Line of the page, from 1.
	Line int
	// User who types it: Admin, or a person whom the stack knows.
	User string
	// Text is what is typed, without the ends of its lines.
	Text string
	// Shown are lines of the output, in their order. Others may be between them.
	Shown []string
}

// prompt begins a command.
var prompt = regexp.MustCompile(`^(admin|hans|anna)\$ (.*)$`)

// Commands reads the commands of the console blocks of a page.
func Commands(page string) ([]Command, error) {
	var out []Command

	for _, b := range Blocks(page, "console") {
		going := false

		for i, line := range strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n") {
			at := b.Line + 1 + i
			m := prompt.FindStringSubmatch(line)

			switch {
			case going:
				last := &out[len(out)-1]
				last.Text, going = strings.CutSuffix(last.Text+strings.TrimSpace(line), `\`)
			case m != nil:
				c := Command{Line: at, User: m[1]}
				c.Text, going = strings.CutSuffix(m[2], `\`)
				out = append(out, c)
			case len(out) == 0:
				return nil, fmt.Errorf("line %d: %q is no output of a command: %w", at, line, errOther)
			default:
				last := &out[len(out)-1]
				last.Shown = append(last.Shown, line)
			}
		}
	}

	return out, nil
}

// Typed is the command as a console shows it.
func (c Command) Typed() string {
	user := c.User
	if user == "" {
		user = Admin
	}

	return user + "$ " + c.Text + "\n"
}

// reading are commands that change nothing.
var reading = regexp.MustCompile(`^(kubectl (-n \S+ )?(get|diff|kausality (trace|can|explain|pending|replay))|\.local/psql .*SELECT) `)

// reads reports whether the command can be repeated until it prints what is shown. A diff reads an object twice, and
// shows what somebody wrote in between; the log has a decision a moment later.
func (c Command) reads() bool { return reading.MatchString(c.Text) }

// failure is the last line of a command that is refused, finds a difference, or answers no.
var failure = regexp.MustCompile(`^(Error from server|error: |[<>] |no$)`)

// fails reports whether the command is shown to fail.
func (c Command) fails() bool {
	return len(c.Shown) > 0 && failure.MatchString(c.Shown[len(c.Shown)-1])
}

// Check compares the output of the command, and the error it ended with, with what is shown. A command without
// output shown may print anything but a warning of Kausality's.
func (c Command) Check(output string, err error) error {
	if failed := err != nil; failed != c.fails() {
		return fmt.Errorf("it says\n%s(%w)", output, errors.Join(err, errOther))
	}

	if want := c.missing(output); want != "" {
		return fmt.Errorf("it does not say %q, but\n%s(%w)", want, output, errOther)
	}

	if said := c.untold(output); said != "" && !c.fails() {
		return fmt.Errorf("the page does not show that it says %q (%w)", said, errOther)
	}

	return nil
}

// missing returns the first line that is shown and not printed; empty if all are.
func (c Command) missing(output string) string {
	lines := strings.Split(output, "\n")

	for _, want := range c.Shown {
		i := slices.IndexFunc(lines, func(line string) bool { return matches(want, line) })
		if i < 0 {
			return want
		}

		lines = lines[i+1:]
	}

	return ""
}

// warning is one of Kausality's.
var warning = regexp.MustCompile(`(?m)^Warning: \S+ ".*$`)

// untold returns a warning that is printed and not shown; empty if there is none.
func (c Command) untold(output string) string {
	for _, said := range warning.FindAllString(output, -1) {
		if !slices.ContainsFunc(c.Shown, func(want string) bool { return matches(want, said) }) {
			return said
		}
	}

	return ""
}

// matches reports whether a line has in it what is shown. One space is as good as many, and ... is any text.
func matches(want, line string) bool {
	parts := strings.Split(strings.Join(strings.Fields(want), " "), "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}

	return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(strings.Join(strings.Fields(line), " "))
}
