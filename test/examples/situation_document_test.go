// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// page is what is written, and compared. To write it anew out of what was read:
//
//	go test -tags stack ./test/examples -run Situations -update
//
// Read what changed then.
var page = filepath.Join("..", "..", "docs", "situations.md")

// TestSituationsReadAsDocumented plays all of them, one after the other: their policies are about one kind.
// No other test has policies about that kind, none has one about Objects meanwhile, and the windows of situations
// are about their namespace.
func TestSituationsReadAsDocumented(t *testing.T) { //nolint:tparallel // One after the other, beside other tests.
	world.Long(t)

	t.Parallel()

	update := flag.Lookup("update").Value.String() == "true"
	p := newPlayer(t)

	have, err := os.ReadFile(page)
	if err != nil && !update {
		t.Fatal(err)
	}

	var out strings.Builder

	out.WriteString(head())

	played := 0

	for _, s := range all() {
		t.Run(s.name, func(t *testing.T) {
			objects.Lock()
			defer objects.Unlock()

			p.t = t
			section := s.document(p.play(&s))
			out.WriteString(section)

			played++

			if update {
				return
			}

			if diff := cmp.Diff(lines(written(string(have), s.title)), lines(section)); diff != "" {
				t.Errorf("docs/situations.md says otherwise, -docs, +read (go test -tags stack ./test/examples -run Situations -update writes it anew):\n%s", diff)
			}
		})
	}

	if update && played < len(all()) {
		t.Fatalf("%d of %d situations were played: -update writes all or none", played, len(all()))
	}

	if update && !t.Failed() {
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	if before, _, _ := strings.Cut(string(have), "\n## "); !update && before != head() {
		t.Errorf("the table of docs/situations.md is another one, -docs, +want:\n%s", cmp.Diff(before, head()))
	}
}

var _ = flag.Bool("update", false, "write docs/situations.md anew")

// head is the page up to the first situation.
func head() string {
	var out strings.Builder

	out.WriteString(`# Situations

What people meet, what they read then, and what helps. ` + "`go test -tags stack ./test/examples -run Situations`" + ` plays each of these on a
real control plane, compares what it reads with this page, and shows that the remedy is one. Bucket ` + "`NAME`" + ` is a composite resource
that had settled; anna is of the group app-team, hans of the platform-team.

| What happened | What helps |
|---|---|
`)

	for _, s := range all() {
		fmt.Fprintf(&out, "| [%s](#%s) | %s |\n", s.title, play.Anchor(s.title), s.remedy)
	}

	return out.String()
}

// document writes a situation as it was read.
func (s *situation) document(r reading) string {
	var out strings.Builder

	fmt.Fprintf(&out, "\n## %s\n", s.title)

	if s.policies != "" {
		fmt.Fprintf(&out, "\nIn force:\n\n```yaml\n%s\n```\n", strings.TrimSpace(s.policies))
	}

	var typed strings.Builder
	for _, c := range append(s.before, s.does) {
		typed.WriteString(c.Typed())
	}

	fmt.Fprintf(&out, "\n```console\n%s%s\n```\n", typed.String(), text(r.said))

	for _, part := range []struct{ title, text string }{
		{"The condition `Kausality`", r.condition}, {"Events", r.events}, {"`kubectl kausality trace`", r.trace}, {"`kubectl kausality doctor`", r.diagnosis},
	} {
		if part.text != "" {
			fmt.Fprintf(&out, "\n%s:\n\n```text\n%s\n```\n", part.title, text(part.text))
		}
	}

	fmt.Fprintf(&out, "\n%s\n\n```console\n", s.remedy)

	for _, c := range s.fix {
		out.WriteString(c.Typed())
	}

	out.WriteString("```\n")

	return out.String()
}

// generated are the parts of names that Crossplane makes up.
var generated = regexp.MustCompile(`\b([a-z]+(?:-[a-z]+)?)-[0-9a-f]{7,12}\b`)

// text is what was read, without what is never the same.
func text(read string) string {
	return generated.ReplaceAllString(strings.TrimSpace(read), "$1-x7k2p")
}

// written is the section of the page about a situation.
func written(page, title string) string {
	for _, s := range play.Sections(page) {
		if s.Heading == title {
			return "\n## " + title + "\n" + s.Text
		}
	}

	return ""
}

// digits are what differs from one time to the next: generations, times, seconds.
var digits = regexp.MustCompile(`\d+`)

func lines(section string) []string {
	return strings.Split(digits.ReplaceAllString(strings.TrimSpace(section), "0"), "\n")
}
