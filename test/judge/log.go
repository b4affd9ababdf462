// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// Line is one line of a file of the baseline: one of its fields is set.
type Line struct {
	// InForce are policies that decisions of the log refer to by their digest; they come before these.
	InForce *decisionlog.InForce `json:"inForce,omitempty"`
	// Decision is one of the log, with the outcome left out.
	Decision *decisionlog.Decision `json:"decision,omitempty"`
	// Case is the name of a case of the corpus.
	Case string `json:"case,omitempty"`
	// Judged is what was decided at the baseline, of Decision or Case.
	Judged *Judged `json:"judged,omitempty"`
}

// Write writes lines, compressed.
func Write(to io.Writer, lines []Line) error {
	zipped, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("cannot compress: %w", err)
	}

	encoder := json.NewEncoder(zipped)
	encoder.SetEscapeHTML(false)

	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return fmt.Errorf("cannot write line %d: %w", i+1, err)
		}
	}

	if err := zipped.Close(); err != nil {
		return fmt.Errorf("cannot compress: %w", err)
	}

	return nil
}

// Sums are the SHA-256 sums of files, as sha256sum writes them.
func Sums(files map[string][]byte) string {
	var out strings.Builder

	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}

	return out.String()
}

// Read calls a function with each line, and its number from 1.
func Read(from io.Reader, each func(number int, line *Line) error) error {
	zipped, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return fmt.Errorf("cannot unzip: %w", err)
	}

	decoder := json.NewDecoder(zipped)

	for number := 1; ; number++ {
		line := &Line{}

		switch err := decoder.Decode(line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read line %d: %w", number, err)
		}

		if err := each(number, line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// Decider decides lines of a log again. It is not safe for concurrent use; what it prepares is.
type Decider struct {
	compiled *inforce.Cache
	sets     map[string]*inforce.Set
}

// NewDecider returns one that knows no policies yet.
func NewDecider() *Decider {
	return &Decider{compiled: inforce.NewCache(), sets: map[string]*inforce.Set{}}
}

// Know compiles what decisions are made by.
func (d *Decider) Know(by *decisionlog.InForce) {
	d.sets[by.Digest] = d.compiled.Set(by.Objects())
}

var errInForce = errors.New("the policies that it was decided by are not in the file before it")

// Prepare returns what decides a request again, by the policies that are known now. A panic of the engine
// is an error.
func (d *Decider) Prepare(record *decisionlog.Decision) (func() (Judged, error), error) {
	set, ok := d.sets[record.InForce]
	if !ok {
		return nil, errInForce
	}

	return func() (Judged, error) {
		return rescued(func() (Judged, error) { return decide(record, set) })
	}, nil
}

// rescued calls what may panic: that is an error then.
func rescued(call func() (Judged, error)) (out Judged, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot decide: %v\n%s", r, debug.Stack()) //nolint:err113 // Of no kind.
		}
	}()

	return call()
}

// decide decides a request again.
func decide(record *decisionlog.Decision, by *inforce.Set) (Judged, error) {
	unknown := &decisionlog.Unknown{}

	req, err := record.Request(by, unknown)
	if err != nil {
		return Judged{}, fmt.Errorf("cannot read decision: %w", err)
	}

	decided := record.Decide(req)

	out, err := Judge(&req, &decided)
	out.Unknown = unknown.What()

	return out, err
}

// Name is what a decision of the log is called, with the number of its line.
func Name(record *decisionlog.Decision, number int) string {
	u := &unstructured.Unstructured{Object: record.New}
	if record.New == nil {
		u.Object = record.Old
	}

	gk := u.GroupVersionKind().GroupKind()

	return fmt.Sprintf("log/%s/%s/%s#%d", record.By.Part, record.Operation, strings.TrimSuffix(gk.String(), "."), number)
}

// Gone is what is decided of a case that the corpus has no more.
func Gone() Judged { return Judged{Decided: map[string]any{partCase: "gone"}} }

// Case decides a case of the corpus. A panic of the engine is an error.
func Case(s *corpus.Scenario) (Judged, error) {
	return rescued(func() (Judged, error) {
		outcome, err := s.Outcome()
		if err != nil {
			return Judged{}, fmt.Errorf("cannot decide case: %w", err)
		}

		return judge(&outcome)
	})
}
