// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatStartsAStackHasTheBuildTag keeps `go test ./...` from starting one.
func TestWhatStartsAStackHasTheBuildTag(t *testing.T) {
	starts := regexp.MustCompile(`\b(stack\.Main|stack\.Start|testStack)\(`)
	found := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || filepath.Base(path) == "tag_test.go" || !starts.Match(raw) {
			return err
		}
		found++
		if !strings.Contains(string(raw), "\n//go:build stack\n") {
			t.Errorf("%s starts a stack and has no line //go:build stack", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 15 {
		t.Errorf("%d files start a stack, want at least 15", found)
	}
}
