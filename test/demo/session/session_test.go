// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// story tells the same story as the demo does, in short, with a generated name.
func story(t *testing.T, name, generation string) *Session {
	t.Helper()

	now := time.Unix(0, 0)

	s := New(io.Discard, false, func() time.Time {
		now = now.Add(700 * time.Millisecond)

		return now
	})

	s.Begin("Before")
	s.Show("admin$ kubectl apply -f all.yaml\nall configured")
	s.Begin("Create")
	s.Begin("Change")
	s.Show("hans$ kubectl patch claim x -p '{\"a\": \"<b> & c\"}'\nclaim patched")
	s.Sayf("It carried, at %s:", "generation 1")
	s.Show("- kind: X\n  generation: 1")
	s.Sayf("The gate was open.")
	s.Begin("Hold")

	for range 3 {
		s.Sayf("anna may not:")
		s.Show("anna$ kubectl patch claim x\nWarning: " + name + " of generation " + generation + " " + strings.Repeat("of no interest ", 40))
	}

	s.Begin("Guard")
	s.Sayf("Not by hand:")
	s.Show("admin$ kubectl edit\nError from server: no")
	s.Sayf("And not by deletion:")
	s.Show("admin$ kubectl delete " + name + "\nError from server: no")
	s.Begin("Copy")
	s.Begin("Forge")
	s.Begin("Trace")
	s.Show("anna$ kubectl kausality trace " + name + "\nhans@example.com\n\n└─ " + name + "  (generation " + generation + ")\nclosed since 2026-01-01T00:00:00Z")

	return s
}

func TestAPictureShowsTheHighlights(t *testing.T) {
	s := story(t, "my-database-abc12-0123456789ab", "9")

	lines, err := read(Picture("a <title>", Highlights(s.Blocks())))
	if err != nil {
		t.Fatal(err)
	}

	for i, l := range lines {
		if strings.HasSuffix(l, ellipsis) {
			lines[i] = l[:20] + ellipsis
		}
	}

	want := []string{
		"3. Change", `hans$ kubectl patch claim x -p '{"a": "<b> & c"}'`, "claim patched",
		"It carried, at generation 1:", "⋮", "The gate was open.",
		"4. Hold", "anna may not:", "anna$ kubectl patch claim x", "Warning: my-database …",
		"anna may not:", "anna$ kubectl patch claim x", "Warning: my-database …", "⋮",
		"5. Guard", "⋮", "And not by deletion:", "admin$ kubectl delete my-database-abc12-0123456789ab", "Error from server: no",
		"8. Trace", "anna$ kubectl kausality trace my-database-abc12-0123456789ab", "hans@example.com", "",
		"└─ my-database-abc12-0123456789ab  (generation 9)", "closed since 2026-01-01T00:00:00Z",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAPictureMayDifferOnlyInWhatIsGenerated(t *testing.T) {
	picture := Picture("title", Highlights(story(t, "my-database-abc12-0123456789ab", "9").Blocks()))

	if err := Compare(picture, Highlights(story(t, "my-database-zzzzz-ffffffffffff", "10").Blocks())); err != nil {
		t.Errorf("another telling of the same story: %v", err)
	}

	blocks := Highlights(story(t, "your-database", "9").Blocks())
	if err := Compare(picture, blocks); err == nil || !strings.Contains(err.Error(), "your-database") {
		t.Errorf("another object: %v", err)
	}

	blocks = Highlights(story(t, "my-database-abc12-0123456789ab", "9").Blocks())
	if err := Compare(picture, blocks[:len(blocks)-1]); err == nil {
		t.Error("a shorter story: no error")
	}

	if err := Compare(picture, append(blocks, Block{Kind: Said, Lines: []string{"More."}})); err == nil || !strings.Contains(err.Error(), "More.") {
		t.Errorf("a longer story: %v", err)
	}

	if err := Compare(picture[:len(picture)/2], blocks); err == nil {
		t.Error("half a picture: no error")
	}
}

func TestACastKeepsTheTime(t *testing.T) {
	text, err := Cast("title", story(t, "x", "1").Blocks())
	if err != nil {
		t.Fatal(err)
	}

	lines := strings.Split(strings.TrimSpace(text), "\n")

	var event []any
	if err := json.Unmarshal([]byte(lines[2]), &event); err != nil {
		t.Fatal(err)
	}

	want := []any{0.7, "o", "\x1b[2m     │ \x1b[0m\x1b[34;1madmin$ \x1b[0m\x1b[1mkubectl apply -f all.yaml\x1b[0m\r\n" +
		"\x1b[2m     │ \x1b[0mall configured\r\n"}
	if diff := cmp.Diff(want, event); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if !strings.HasPrefix(lines[0], "{") || !strings.Contains(lines[0], `"version":2`) {
		t.Errorf("the head is %s", lines[0])
	}
}

func TestATerminalIsWrittenToWithoutColoursWhereNoneAreWanted(t *testing.T) {
	var plain, coloured strings.Builder

	for out, colours := range map[*strings.Builder]bool{&plain: false, &coloured: true} {
		s := New(out, colours, time.Now)
		s.Begin("Title")
		s.Show("Warning: w")
	}

	if diff := cmp.Diff("\n1. Title\n     │ Warning: w\n", plain.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if !strings.Contains(coloured.String(), "\x1b[33mWarning: w\x1b[0m") {
		t.Errorf("no colours: %q", coloured.String())
	}
}
