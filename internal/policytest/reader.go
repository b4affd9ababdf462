// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"

	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Reader reads scenarios. What several of them name it reads, and compiles, once. It is safe
// for concurrent use.
type Reader struct {
	files    Files
	compiled *inforce.Cache
	gates    *policy.Cache
	// enforce has what is in Shadow mode be in force.
	enforce bool

	texts    once[[]byte]
	bases    once[[]byte]
	policies once[*holding]
	defaults once[map[string]json.RawMessage]
}

// NewReader makes a Reader of some files.
func NewReader(files Files) *Reader {
	return &Reader{files: files, compiled: inforce.NewCache(), gates: policy.NewCache()}
}

// once makes a value for each key once.
type once[V any] struct {
	mu   sync.Mutex
	made map[string]func() (V, error)
}

func (o *once[V]) get(key string, value func() (V, error)) (V, error) {
	o.mu.Lock()

	if o.made == nil {
		o.made = map[string]func() (V, error){}
	}

	f, ok := o.made[key]
	if !ok {
		f = sync.OnceValues(value)
		o.made[key] = f
	}

	o.mu.Unlock()

	return f()
}

func (r *Reader) read(name string) ([]byte, error) {
	return r.texts.get(name, func() ([]byte, error) { return r.files.ReadFile(name) })
}

// Read reads one scenario. The error has the path of the file that is wrong, the line where that
// is known, and the field.
func (r *Reader) Read(at Place) (Scenario, error) {
	raw, err := r.files.ReadFile(at.Path)
	if err != nil {
		return Scenario{}, fmt.Errorf("cannot read scenario %q: %w", at.Path, err)
	}

	return r.Parse(at, raw)
}

// Parse reads one scenario whose text is known.
func (r *Reader) Parse(at Place, raw []byte) (Scenario, error) {
	return r.parse(at, raw, nil)
}

// parse reads a scenario that others come after, which led here.
func (r *Reader) parse(at Place, raw []byte, led []string) (Scenario, error) {
	s := Scenario{Name: at.name(), reader: r, at: at, led: led, archive: txtar.Parse(raw)}
	s.Reason = strings.TrimSpace(string(s.archive.Comment))
	s.sections = sections(at.Path, s.archive)

	steps := []func() error{s.readFiles, s.readAsk, s.readObjects, s.readPolicies, s.readWant}
	for _, step := range steps {
		if err := step(); err != nil {
			return s, err
		}
	}

	return s, nil
}

// sections are the files of a scenario, with where they begin.
func sections(file string, archive *txtar.Archive) []section {
	line := strings.Count(string(archive.Comment), "\n")
	out := make([]section, 0, len(archive.Files))

	for _, f := range archive.Files {
		line++ // That with the name.

		out = append(out, section{file: file, part: f.Name, before: line, text: f.Data})
		line += strings.Count(string(f.Data), "\n")
	}

	return out
}

// fileDefaults is the name of the file in a directory that says what the scenarios there, and
// below, do not say themselves.
const fileDefaults = "defaults.yaml"

// defaultsAt are those for a scenario. What is nearest to it counts.
func (r *Reader) defaultsAt(at Place) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}

	for _, dir := range at.directories() {
		more, err := r.defaults.get(dir, func() (map[string]json.RawMessage, error) { return r.readDefaults(dir) })
		if err != nil {
			return nil, err
		}

		for key, value := range more {
			if _, ok := out[key]; !ok {
				out[key] = value
			}
		}
	}

	return out, nil
}

// readDefaults reads those of a directory; none where it has no such file.
func (r *Reader) readDefaults(dir string) (map[string]json.RawMessage, error) {
	file := path.Join(dir, fileDefaults)

	raw, err := r.files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]json.RawMessage{}, nil
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read defaults: %w", err)
	}

	var req Request
	if err := (section{file: file, text: raw}).decode(&req); err != nil {
		return nil, err
	}

	given, err := fields(raw)
	if err != nil {
		return nil, err
	}

	// Names mean the same wherever they are used.
	req.locateFrom(dir)

	resolved, err := fieldsOf(req)
	if err != nil {
		return nil, err
	}

	maps.DeleteFunc(resolved, func(key string, _ json.RawMessage) bool { _, ok := given[key]; return !ok })
	maps.Copy(given, resolved)

	return given, nil
}

// locateFrom has paths be those from a directory.
func (q *Request) locateFrom(dir string) {
	for _, name := range []*string{&q.Base, &q.Parent} {
		*name = from(dir, *name)
	}

	if q.ParentAfter != "" && !isPath(q.ParentAfter) {
		q.ParentAfter += Ending
	}

	q.ParentAfter = from(dir, q.ParentAfter)

	for i := range q.Policies {
		q.Policies[i] = from(dir, q.Policies[i])
	}
}
