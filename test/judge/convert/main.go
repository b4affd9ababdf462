// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Command convert gives the inputs of test/corpus and of the log of test/judge the form that records have now. What an object
// meant before is what it means then, or the program ends with an error.
//
//	go run ./test/judge/convert
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// Where the inputs are, from the root of the repository.
const (
	corpusDir = "test/corpus"
	judgeDir  = "test/judge"
)

func main() {
	if err := errors.Join(convertCorpus(), convertLog()); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

// convertCorpus converts the cases, and the objects that they are based on.
func convertCorpus() error {
	return filepath.WalkDir(corpusDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".txtar") && !strings.HasSuffix(path, ".yaml") {
			return err
		}

		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read case: %w", err)
		}

		text, err := Text(string(raw))
		if err != nil || text == string(raw) {
			return err
		}

		return os.WriteFile(path, []byte(text), 0o644)
	})
}

// convertLog converts the objects that decisions of the log are about.
func convertLog() error {
	name := filepath.Join(judgeDir, "log.jsonl.gz")

	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read log: %w", err)
	}
	defer file.Close() //nolint:errcheck // It was read.

	var lines []judge.Line

	if err := judge.Read(file, func(_ int, line *judge.Line) error {
		if d := line.Decision; d != nil {
			for _, o := range []decisionlog.Object{d.Old, d.New, d.Parent} {
				if err := Object(o); err != nil {
					return err
				}
			}
		}

		lines = append(lines, *line)

		return nil
	}); err != nil {
		return fmt.Errorf("cannot convert log: %w", err)
	}

	out, err := os.Create(name + ".new")
	if err != nil {
		return fmt.Errorf("cannot write log: %w", err)
	}

	if err := errors.Join(judge.Write(out, lines), out.Close(), os.Rename(name+".new", name)); err != nil {
		return fmt.Errorf("cannot write log: %w", err)
	}

	return writeSums()
}

// writeSums writes the sums of the files of the baseline, whose commit stays.
func writeSums() error {
	files := map[string][]byte{}

	for _, name := range []string{"corpus.jsonl.gz", "log.jsonl.gz"} {
		raw, err := os.ReadFile(filepath.Join(judgeDir, name))
		if err != nil {
			return fmt.Errorf("cannot read file: %w", err)
		}

		files[name] = raw
	}

	name := filepath.Join(judgeDir, "baseline")

	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cannot read baseline: %w", err)
	}

	commit, _, _ := strings.Cut(string(raw), "\n")

	if err := os.WriteFile(name, []byte(commit+"\n"+judge.Sums(files)), 0o644); err != nil {
		return fmt.Errorf("cannot write baseline: %w", err)
	}

	return nil
}
