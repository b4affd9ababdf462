// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"bytes"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// TestNothingIsDecidedOtherwiseThanAtTheBaseline but for what changed.yaml says.
func TestNothingIsDecidedOtherwiseThanAtTheBaseline(t *testing.T) {
	t.Parallel()

	commit, sorting := baseline(t), changed(t).Sort()

	for _, name := range []string{"corpus.jsonl.gz", "log.jsonl.gz"} {
		for _, d := range again(t, name) {
			sorting.Compare(d.in, *d.was, d.is)
		}
	}

	if text := sorting.Report(); text != "" {
		t.Errorf("%d parts of decisions are others than at commit %s, and fit no entry of test/judge/changed.yaml:\n%s",
			len(sorting.Others), commit, text)
	}

	for _, text := range sorting.Unused() {
		t.Errorf("test/judge/changed.yaml: %s", text)
	}
}

// TestCasesOfTheBaselineAreThereOnce lists what only the corpus judges.
func TestCasesOfTheBaselineAreThereOnce(t *testing.T) {
	t.Parallel()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	known := map[string]int{}

	if err := judge.Read(bytes.NewReader(read(t, "corpus.jsonl.gz")), func(_ int, line *judge.Line) error {
		known[line.Case]++

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	for name, n := range known {
		if n != 1 {
			t.Errorf("case %s is there %d times", name, n)
		}
	}

	for i := range all {
		if known[all[i].Name] == 0 {
			t.Logf("case %s is newer than the baseline: nothing but the corpus says how it was decided before", all[i].Name)
		}
	}
}

// baseline is the commit that the files were made at, which are whole.
func baseline(t *testing.T) string {
	t.Helper()

	commit, sums, _ := strings.Cut(string(read(t, "baseline")), "\n")
	if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(commit) {
		t.Fatalf("baseline: %q is no commit", commit)
	}

	want := judge.Sums(map[string][]byte{"corpus.jsonl.gz": read(t, "corpus.jsonl.gz"), "log.jsonl.gz": read(t, "log.jsonl.gz")})
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Fatalf("The files are not those of the baseline: -are, +were:\n%s", diff)
	}

	return commit
}

func changed(t *testing.T) *judge.Changed {
	t.Helper()

	out, err := judge.ParseChanged(read(t, "changed.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func read(t *testing.T, name string) []byte {
	t.Helper()

	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

// decided is a decision of a file, at the baseline and now.
type decided struct {
	in     string
	number int
	was    *judge.Judged
	is     judge.Judged
}

// job decides one line again.
type job struct {
	number int
	line   *judge.Line
	decide func() (string, judge.Judged, error)
}

// again decides all lines of a file again, in their order.
func again(t *testing.T, name string) []decided {
	t.Helper()

	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was read.

	var (
		out     []decided
		mu      sync.Mutex
		workers sync.WaitGroup
	)

	jobs := make(chan job)

	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				in, is, err := j.decide()
				if err != nil {
					t.Errorf("%s: line %d: %v", name, j.number, err)

					continue
				}

				mu.Lock()
				out = append(out, decided{in, j.number, j.line.Judged, is})
				mu.Unlock()
			}
		})
	}

	err = judge.Read(file, reader(t, jobs))

	close(jobs)
	workers.Wait()

	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	slices.SortFunc(out, func(a, b decided) int { return a.number - b.number })

	t.Logf("%s: %d decisions", name, len(out))

	return out
}

// reader makes a job of each decision.
func reader(t *testing.T, jobs chan<- job) func(number int, line *judge.Line) error {
	t.Helper()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]*corpus.Scenario{}
	for i := range all {
		cases[all[i].Name] = &all[i]
	}

	decider := judge.NewDecider()

	return func(number int, line *judge.Line) error {
		switch {
		case line.InForce != nil:
			decider.Know(line.InForce)
		case line.Decision != nil:
			decide, err := decider.Prepare(line.Decision)
			if err != nil {
				return err
			}

			jobs <- job{number, line, func() (string, judge.Judged, error) {
				is, err := decide()

				return judge.Name(line.Decision, number), is, err
			}}
		default:
			jobs <- job{number, line, func() (string, judge.Judged, error) {
				s, ok := cases[line.Case]
				if !ok {
					return "corpus/" + line.Case, judge.Gone(), nil
				}

				is, err := judge.Case(s)

				return "corpus/" + line.Case, is, err
			}}
		}

		return nil
	}
}
