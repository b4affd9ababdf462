// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// errOther is the cause when a picture shows another story.
var errOther = errors.New("the picture is of another story; record it anew")

// Compare compares a picture with what it should show. What differs from one
// telling to the next may differ: generated names, generations, times and numbers
// of seconds.
func Compare(picture string, blocks []Block) error {
	shown, err := read(picture)
	if err != nil {
		return err
	}

	var told []string

	for _, b := range blocks {
		told = append(told, b.Lines...)
	}

	for i := range max(len(shown), len(told)) {
		var got, want string
		if i < len(shown) {
			got = normal(shown[i])
		}

		if i < len(told) {
			want = normal(told[i])
		}

		start, cut := strings.CutSuffix(got, ellipsis)
		if got != want && (!cut || !strings.HasPrefix(want, start)) {
			return fmt.Errorf("line %d shows %q, not %q: %w", i+1, got, want, errOther)
		}
	}

	return nil
}

// textRow is a row of a picture.
type textRow struct {
	Class string `xml:"class,attr"`
	Spans []struct {
		Class string `xml:"class,attr"`
		Text  string `xml:",chardata"`
	} `xml:"tspan"`
}

// text is what is on the row, without its margin.
func (r textRow) text() string {
	var out strings.Builder

	for _, s := range r.Spans {
		if s.Class != styleMargin {
			out.WriteString(s.Text)
		}
	}

	return out.String()
}

// read returns the lines that a picture shows.
func read(picture string) ([]string, error) {
	var out []string

	for dec := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}

		if err != nil {
			return nil, fmt.Errorf("cannot read the picture: %w", err)
		}

		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}

		var r textRow
		if err := dec.DecodeElement(&r, &start); err != nil {
			return nil, fmt.Errorf("cannot read a row of the picture: %w", err)
		}

		if n := len(out); r.Class == goesOn && n > 0 {
			out[n-1] = strings.TrimSuffix(out[n-1], lineEnd) + " " + strings.TrimSpace(r.text())
		} else {
			out = append(out, r.text())
		}
	}
}

// variables are what differs from one telling to the next, and what stands for it.
func variables() []struct{ was, is string } {
	return []struct{ was, is string }{
		{`my-database-[a-z0-9]{5}-[0-9a-f]{12}`, "NAME-NAME"},
		{`my-database-[a-z0-9]{5}\b`, "NAME"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`generation:? \d+`, "generation N"},
		{`\b\d+s\b`, "Ns"},
		{`too \(\d+\)`, "too (N)"},
		{`\s+`, " "},
	}
}

// normal is a line without what differs from one telling to the next.
func normal(line string) string {
	for _, v := range variables() {
		line = regexp.MustCompile(v.was).ReplaceAllString(line, v.is)
	}

	return strings.TrimSpace(line)
}
