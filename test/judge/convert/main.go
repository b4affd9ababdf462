// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Command convert gives the allowances in the inputs of test/corpus, and in the log and what was judged of test/judge, the form
// that they have now: with source and id. What an object of the log meant before is what it means then, or the program ends
// with an error. It converts files that it is given, too.
//
//	go run ./test/judge/convert [FILE...]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

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

// convertCorpus converts the cases, and the objects that they are based on.
func convertCorpus() error {
	return filepath.WalkDir(corpusDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".txtar") && !strings.HasSuffix(path, ".yaml") {
			return err
		}

		return convertFile(path)
	})
}

func convertFile(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read file: %w", err)
	}

	text := Text(string(raw))
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

	windows := map[string]types.UID{}

	if err := judge.Read(in, func(_ int, line *judge.Line) error {
		if line.InForce != nil {
			for _, w := range line.InForce.Objects().Windows {
				windows[w.GetName()] = w.GetUID()
			}
		}

		if err := convertDecision(line.Decision, windows); err != nil {
			return err
		}

		if line.Judged != nil {
			texts(line.Judged.Decided)
			texts(line.Judged.Patched)
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
func convertDecision(d *decisionlog.Decision, windows map[string]types.UID) error {
	if d == nil {
		return nil
	}

	var parent *unstructured.Unstructured
	if d.Parent != nil {
		parent = &unstructured.Unstructured{Object: d.Parent}
	}

	stored := d.Old
	if d.By.Part == decisionlog.PartEnforce { // What the mutating webhook made of it.
		stored = d.New
	}

	if err := errors.Join(Object(d.New, parent, stored, windows), Object(d.Old, parent, d.Old, windows)); err != nil {
		return err
	}

	return errors.Join(Object(d.Parent, nil, d.Parent, windows), Object(d.Namespace, nil, d.Namespace, windows))
}

// texts converts the allowances in a document, and in its texts.
func texts(v any) {
	switch t := v.(type) {
	case map[string]any:
		if raw, err := yaml.Marshal(t); err == nil {
			if a, ok := parse(string(raw)); ok && t["initiator"] != nil {
				infer(&a)

				raw, _ = json.Marshal(a) //nolint:errchkjson // It came of JSON.

				clear(t)

				_ = json.Unmarshal(raw, &t)
			}
		}

		for key, e := range t {
			if text, ok := e.(string); ok {
				t[key] = Text(text)
			} else {
				texts(e)
			}
		}
	case []any:
		for _, e := range t {
			texts(e)
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
