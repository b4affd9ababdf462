// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestNamesOfMetricsAndEventsAreThoseOfTheReference has people alert on what
// exists: the reference is generated from the code.
func TestNamesOfMetricsAndEventsAreThoseOfTheReference(t *testing.T) {
	known := bytes.Join([][]byte{
		text(t, filepath.Join(root, reference, "metrics.md")),
		text(t, filepath.Join(root, reference, "events.md")),
		text(t, filepath.Join(root, reference, "alerts.md")),
	}, nil)

	names := regexp.MustCompile("`(kausality_[a-z_]+[a-z]|Kausality[A-Z][A-Za-z]+)")
	seen := 0

	for _, file := range pages(t) {
		if filepath.Dir(file) == filepath.Join(root, reference) {
			continue
		}

		for _, m := range names.FindAllSubmatch(text(t, file), -1) {
			seen++

			name := string(m[1])
			if !regexp.MustCompile("(?m)(`|^## )" + name + "\\b").Match(known) {
				t.Errorf("%s: nothing in %s is named %q", file, reference, name)
			}
		}
	}

	if seen < 20 {
		t.Errorf("%d names, want at least 20", seen)
	}
}

// TestTheMessagesToTroubleshootAreThoseOfTheCode holds the headings that quote a
// message to it.
func TestTheMessagesToTroubleshootAreThoseOfTheCode(t *testing.T) {
	code := sources(t)
	quoted := regexp.MustCompile("(?m)^### `([^`]+)`$").FindAllSubmatch(text(t, filepath.Join(root, "docs", "operations.md")), -1)

	for _, m := range quoted {
		if !bytes.Contains(code, m[1]) {
			t.Errorf("nothing in the code says %q", m[1])
		}
	}

	if len(quoted) < 5 {
		t.Errorf("%d messages, want at least 5", len(quoted))
	}
}

// TestTheScenariosAreCounted holds docs/engine.md to how many there are, in hundreds.
func TestTheScenariosAreCounted(t *testing.T) {
	all, err := corpus.Sources()
	if err != nil {
		t.Fatal(err)
	}

	want := fmt.Sprintf("has some %d scenarios", len(all)/100*100)
	if !bytes.Contains(text(t, filepath.Join(root, "docs", "engine.md")), []byte(want)) {
		t.Errorf("there are %d scenarios, and docs/engine.md does not say %q", len(all), want)
	}
}

// sources are those of the programs.
func sources(t *testing.T) []byte {
	t.Helper()

	var out bytes.Buffer

	for _, dir := range []string{"apis", "engine", "fn", "webhook", "gatecontroller", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}

			raw, err := os.ReadFile(path)
			out.Write(raw)

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return out.Bytes()
}
