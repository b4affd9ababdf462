// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// A System holds external objects.
type System struct {
	server *httptest.Server

	mu      sync.Mutex
	objects map[string]*object
}

// An object is one external object, or what is to become of one.
type object struct {
	// changing is held while a call changes the object: another one waits.
	changing sync.Mutex

	// state is nil where the object is not there.
	state   map[string]any
	trouble Trouble
	calls   []Call
}

// Trouble is what becomes of the next changes of an object.
type Trouble struct {
	// Fail is how many of them fail.
	Fail int
	// Late has those that fail be made all the same.
	Late bool
	// Slow is how long each takes, whether it fails or not.
	Slow time.Duration
}

// Zone is what an object gets that is made without a zone.
const Zone = "zone-a"

// Start serves an empty system on loopback until it is stopped.
func Start() *System {
	s := &System{objects: map[string]*object{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))

	return s
}

// Stop ends it.
func (s *System) Stop() { s.server.Close() }

// URL is where it takes calls.
func (s *System) URL() string { return s.server.URL }

// State returns an object, and whether it is there.
func (s *System) State(name string) (map[string]any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	o := s.object(name)

	return maps.Clone(o.state), o.state != nil
}

// Calls returns the calls about an object so far, in the order they arrived.
func (s *System) Calls(name string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.object(name).calls)
}

// Changes returns the calls that were to change an object.
func (s *System) Changes(name string) []Call {
	return slices.DeleteFunc(s.Calls(name), func(c Call) bool { return c.Verb == Observe })
}

// Trouble makes trouble for the next changes of an object.
func (s *System) Trouble(name string, t Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.object(name).trouble = t
}

// Drift has an object change by itself, if it is there.
func (s *System) Drift(name string, values map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if o := s.object(name); o.state != nil {
		o.state = maps.Clone(o.state)
		maps.Copy(o.state, values)
	}
}

// object returns an object; the lock is held.
func (s *System) object(name string) *object {
	o, ok := s.objects[name]
	if !ok {
		o = &object{}
		s.objects[name] = o
	}

	return o
}

// serve answers one call.
func (s *System) serve(w http.ResponseWriter, r *http.Request) {
	var req Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	answer := Answer{}
	if err := s.call(r.Context(), req); err != nil {
		answer.Error = err.Error()
	}

	answer.State, answer.Exists = s.State(req.Name)

	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return // Whoever asked is gone.
	}
}

// call writes a call down and carries it out. One that changes an object waits
// for the one before it.
func (s *System) call(ctx context.Context, req Request) error {
	s.mu.Lock()
	o := s.object(req.Name)
	o.calls = append(o.calls, Call{Request: req, At: time.Now()})
	at := len(o.calls) - 1
	s.mu.Unlock()

	if req.Verb != Observe {
		o.changing.Lock()
		defer o.changing.Unlock()
	}

	applied, err := s.carryOut(ctx, o, req)

	s.mu.Lock()
	defer s.mu.Unlock()

	c := &o.calls[at]
	c.Took, c.Applied = time.Since(c.At), applied

	if err != nil {
		c.Error = err.Error()
	}

	return err
}

var (
	errTrouble = errors.New("the external system has trouble")
	errExists  = errors.New("the object exists")
	errMissing = errors.New("the object does not exist")
	errGone    = errors.New("the caller went away")
)

// carryOut reports whether the object was changed.
func (s *System) carryOut(ctx context.Context, o *object, req Request) (applied bool, err error) {
	if req.Verb == Observe {
		return false, nil
	}

	s.mu.Lock()
	t := o.trouble
	o.trouble.Fail = max(0, t.Fail-1)
	s.mu.Unlock()

	// When a caller goes away, nobody can know what becomes of its call; but it
	// does so now, not later.
	if !wait(ctx, t.Slow) && rand.IntN(2) == 0 {
		return false, errGone
	}

	if t.Fail > 0 && !t.Late {
		return false, errTrouble
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if err := o.change(req); err != nil {
		return false, err
	}

	if t.Fail > 0 {
		return true, errTrouble
	}

	return true, nil
}

// wait reports whether the caller waited along.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// change changes an object: all of it but what the system itself decided when it
// was made.
func (o *object) change(req Request) error {
	switch {
	case req.Verb == Create && o.state != nil:
		return errExists
	case req.Verb == Update && o.state == nil:
		return errMissing
	case req.Verb == Delete:
		o.state = nil

		return nil
	}

	state := maps.Clone(req.Payload)
	if state == nil {
		state = map[string]any{}
	}

	for _, key := range []string{"zone", "image"} {
		if _, ok := state[key]; !ok && o.state[key] != nil {
			state[key] = o.state[key]
		}
	}

	if _, ok := state["zone"]; !ok {
		state["zone"] = Zone
	}

	o.state = state

	return nil
}
