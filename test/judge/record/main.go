// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record makes the files of a new baseline of test/judge: the decisions of the corpus, and those of
// the decision logs in some directories, as the engine of the tree decides them. Of decisions that are alike
// but for names of objects, UIDs, versions and times, the first stays.
//
//	go run ./test/judge/record [--most=BYTES] DIRECTORY...
//
// Without a directory the log stays, and the decisions of the corpus are made again.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// dir is where the files are, from the root of the repository.
const dir = "test/judge"

func main() {
	most := flag.Int("most", 6_000_000, "bytes of the compressed log at most")
	flag.Parse()

	if err := record(flag.Args(), *most); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

var errChanged = errors.New("engine, apis or internal differ from the commit: a baseline is a commit")

// record makes the files. The baseline is the last commit that changed what decides.
func record(dirs []string, most int) error {
	commit, err := exec.Command("git", "log", "-1", "--format=%H", "--", "engine", "apis", ":!*_test.go").Output() //nolint:noctx // It ends at once.
	if err != nil {
		return fmt.Errorf("cannot name the commit: %w", err)
	}

	// What decides, and what says what a decision is.
	changed, err := exec.Command("git", "status", "--porcelain", "--", "engine", "apis", "internal").Output() //nolint:noctx // Likewise.
	if err != nil || len(changed) > 0 {
		return errors.Join(errChanged, err)
	}

	cases, err := casesOfCorpus()
	if err != nil {
		return err
	}

	out := map[string][]byte{"corpus.jsonl.gz": cases}

	if len(dirs) > 0 {
		out["log.jsonl.gz"], err = recordLog(dirs, most)
	} else {
		out["log.jsonl.gz"], err = os.ReadFile(filepath.Join(dir, "log.jsonl.gz"))
	}

	if err != nil {
		return fmt.Errorf("cannot make log: %w", err)
	}

	out["baseline"] = append(commit, judge.Sums(out)...)

	for name, data := range out {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("cannot write file: %w", err)
		}
	}

	return nil
}

// recordLog makes the log of those in some directories.
func recordLog(dirs []string, most int) ([]byte, error) {
	files, err := logs(dirs)
	if err != nil {
		return nil, err
	}

	s := newSieve()

	for _, file := range files {
		if err := s.read(file); err != nil {
			return nil, err
		}
	}

	out, err := s.within(most)
	fmt.Println(s)

	return out, err
}

// casesOfCorpus are the decisions of the corpus, as a file.
func casesOfCorpus() ([]byte, error) {
	all, err := corpus.All()
	if err != nil {
		return nil, fmt.Errorf("cannot read corpus: %w", err)
	}

	lines := make([]judge.Line, len(all))

	for i := range all {
		judged, err := judge.Case(&all[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].Name, err)
		}

		lines[i] = judge.Line{Case: all[i].Name, Judged: &judged}
	}

	return written(lines)
}

func written(lines []judge.Line) ([]byte, error) {
	var out bytes.Buffer

	err := judge.Write(&out, lines)

	return out.Bytes(), err
}

// logs are the files in some directories and below whose names end in .log.
func logs(dirs []string) ([]string, error) {
	var out []string

	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(path, ".log") {
				out = append(out, path)
			}

			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list logs: %w", err)
		}
	}

	return out, nil
}
