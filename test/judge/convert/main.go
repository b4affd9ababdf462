// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Command convert gives the records of gates in the inputs of test/corpus, and in the log and what was judged of test/judge, the
// form that they have now: with v, and one annotation for what a Composition asks for and its mode. What an object of the log
// meant before is what it means then, or the program ends with an error. It converts files that it is given, too.
//
//	go run ./test/judge/convert [FILE...]
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// Where the inputs are, from the root of the repository.
const (
	corpusDir = "test/corpus"
	judgeDir  = "test/judge"
)

func main() {
	if err := convert(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func convert(files []string) error {
	if len(files) == 0 {
		return errors.Join(convertCorpus(), convertLog("corpus.jsonl.gz"), convertLog("log.jsonl.gz"), writeSums())
	}

	for _, name := range files {
		if err := convertFile(name); err != nil {
			return err
		}
	}

	return nil
}

// convertCorpus converts the cases but those of a former form, and the objects that they are based on.
func convertCorpus() error {
	return filepath.WalkDir(corpusDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "former-") {
			return err
		}

		if !strings.HasSuffix(path, ".txtar") && !strings.HasSuffix(path, ".yaml") {
			return nil
		}

		return convertFile(path)
	})
}

func convertFile(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read file: %w", err)
	}

	text := gates(string(raw))
	if text == string(raw) {
		return nil
	}

	return os.WriteFile(path, []byte(text), 0o644) //nolint:wrapcheck // It names the file.
}

// convertLog converts the objects that decisions of a file are about, and what was judged of them.
func convertLog(file string) error {
	name := filepath.Join(judgeDir, file)

	in, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read log: %w", err)
	}
	defer in.Close() //nolint:errcheck // It was read.

	var lines []judge.Line

	if err := judge.Read(in, func(_ int, line *judge.Line) error {
		if err := convertDecision(line.Decision); err != nil {
			return err
		}

		if line.Judged != nil {
			judged(line.Judged.Decided)
			judged(line.Judged.Patched)
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

	return nil
}

// convertDecision converts the objects of a decision; nil is none.
func convertDecision(d *decisionlog.Decision) error {
	if d == nil {
		return nil
	}

	return errors.Join(Gate(d.New), Gate(d.Old), Gate(d.Parent))
}

// judged converts what was judged of gates.
func judged(v any) {
	switch t := v.(type) {
	case map[string]any:
		convertGate(t)

		if rec, ok := t["record"].(map[string]any); ok {
			convertRecord(rec)
		}

		for _, e := range t {
			judged(e)
		}
	case []any:
		for i, e := range t {
			if e == formerPolicies || e == formerMode {
				t[i] = v1alpha1.AnnotationDesiredPolicies
			}

			judged(e)
		}
	}
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
