// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion_test

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/replay"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// recording is a decision log as manager and function write it.
type recording struct {
	encoder decisionlog.Encoder
	digests map[string]bool
	text    bytes.Buffer
}

// add writes what was decided.
func (r *recording) add(t *testing.T, by decisionlog.By, req *request.Request, d *decision.Decision) {
	t.Helper()

	if r == nil {
		return
	}

	e, err := r.encoder.Encode(decisionlog.Asked{By: by}, req, d)
	if err != nil {
		t.Fatal(err)
	}

	if !r.digests[e.Digest] {
		r.text.Write(e.InForce)
	}

	if r.digests == nil {
		r.digests = map[string]bool{}
	}

	r.digests[e.Digest] = true
	r.text.Write(e.Decision)
}

// asked writes what the function decides about a composed resource; nil where nothing is
// recorded.
func (r *recording) asked(t *testing.T, xr *unstructured.Unstructured, name string) func(*request.Request, *decision.Decision) {
	t.Helper()

	if r == nil {
		return nil
	}

	by := decisionlog.By{Part: decisionlog.PartFunction, Composite: &decisionlog.Composite{
		APIVersion: xr.GetAPIVersion(), Kind: xr.GetKind(), Namespace: xr.GetNamespace(), Name: xr.GetName(), Resource: name,
	}}

	return func(req *request.Request, d *decision.Decision) { r.add(t, by, req, d) }
}

// log is the recording, to be read.
func (r *recording) log() replay.Log {
	text := r.text.String()

	return replay.Log{Name: "decisions.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// observed are the changes that the recording shows.
func (r *recording) observed(t *testing.T) []suggestion.Observed {
	t.Helper()

	var seen suggestion.Log

	read, err := replay.Read(t.Context(), []replay.Log{r.log()}, func(log string, line int, d *decisionlog.Decision) {
		seen.Add(log+":"+strconv.Itoa(line), d)
	})
	if err != nil || len(read.Problems) > 0 || read.Decisions == 0 {
		t.Fatalf("%+v: %v", read, err)
	}

	return seen.Observed()
}

// opaque are Compositions by a function of which nobody knows what it makes of what.
func opaque(m suggestion.Material) suggestion.Material {
	m.Compositions = slices.Clone(m.Compositions)

	for i, c := range m.Compositions {
		c = c.DeepCopy()

		for _, s := range resource.List(c.Object, "spec", "pipeline") {
			if step, _ := s.(map[string]any); resource.String(step, "input", "kind") == "Resources" {
				delete(step, "input")
				step["functionRef"] = map[string]any{"name": "function-kcl"}
			}
		}

		m.Compositions[i] = c
	}

	m.Composition = m.Compositions[0]

	return m
}

// record plays all changes, one after the other, and adds what is decided to a log.
func (p play) record(t *testing.T, m suggestion.Material, mode v1alpha1.Mode, policies []*policy.Policy, log *recording) {
	t.Helper()

	w := &world{t: t, Material: m, mode: v1alpha1.ModeHold, now: start, log: log, policies: policy.NewSet(policies...)}
	w.make(&unstructured.Unstructured{Object: p.Root})

	w.mode = mode

	for _, c := range p.Changes {
		w.now = w.now.Add(time.Minute)
		w.edit(hans(), c.Field, c.Value)
	}
}

// rounds is how often at most is recorded what follows from what was let through after the
// time before: a Claim's change has to reach the XR before it is known what follows from that.
const rounds = 4

// suggested are the policies that logs show to be needed, round after round.
func (p play) suggested(t *testing.T, m suggestion.Material, mode v1alpha1.Mode) (suggestion.Suggestion, []*policy.Policy, []*recording) {
	t.Helper()

	blind := opaque(m)
	s, policies := suggest(t, blind, options())

	var (
		seen []suggestion.Observed
		logs []*recording
	)

	for range rounds {
		log := &recording{}
		p.record(t, m, mode, policies, log)
		logs = append(logs, log)

		seen = append(seen, log.observed(t)...)
		blind.Observed = slices.Values(seen)

		next, compiled := suggest(t, blind, options())
		if next.Manifest() == s.Manifest() {
			break
		}

		s, policies = next, compiled
	}

	return s, policies, logs
}

// seen plays the change by who may: all of it follows, nothing is held, and no gate opens that
// would not by policies that follow patches. A resource that was seen to be made was not seen to
// be changed.
func (e edit) seen(t *testing.T, w *world) {
	t.Helper()

	before := w.objects()

	if !w.edit(hans(), e.Field, e.Value) {
		t.Error("hans may not")
	}

	diff(t, "what follows", e.Follows, changed(before, w.objects()))
	diff(t, "held", nil, w.held())

	resources := func(gates []string) []string {
		var out []string

		for _, g := range gates {
			if name, _, _ := strings.Cut(g, " "); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}

		return out
	}

	opened := w.opened()
	diff(t, "resources of which gates open", resources(e.Opens), resources(opened))

	for _, g := range opened {
		if !slices.Contains(e.Opens, g) {
			t.Errorf("gate %s opens", g)
		}
	}
}

// excerpt is the recording with one decision of the function, by its line, and all of the
// webhook.
func (r *recording) excerpt(t *testing.T, line int) replay.Log {
	t.Helper()

	var out strings.Builder

	for i, text := range strings.SplitAfter(r.text.String(), "\n") {
		if i+1 == line || !strings.Contains(text, `"by":{"part":"function"`) {
			out.WriteString(text)
		}
	}

	return replay.Log{Name: "excerpt", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(out.String())), nil }}
}

// replayed checks that the policies that are suggested let through each change that was held for
// want of a policy, where it was wanted first.
func (r *recording) replayed(t *testing.T, s suggestion.Suggestion) {
	t.Helper()

	var policies replay.Policies
	for _, p := range s.Policies {
		policies.Policies = append(policies.Policies, p.Policy)
	}

	for _, o := range r.observed(t) {
		_, number, _ := strings.Cut(o.At, ":")

		line, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}

		field := regexp.MustCompile(`\[\d+\]`).ReplaceAllString(o.ChildField, "[*]")

		for _, chains := range []bool{true, false} {
			got, err := replay.Run(t.Context(), []replay.Log{r.excerpt(t, line)}, replay.Options{Policies: policies, Chains: chains, Workers: 2})
			if err != nil || got.Unreadable+got.Unknown > 0 {
				t.Fatalf("%+v: %v", got, err)
			}

			if allowed := slices.ContainsFunc(got.Changes, func(c replay.Change) bool {
				return c.Kind == o.Child.Kind && c.Group == o.Child.Group && c.Field == field && c.After == string(finding.Allowed)
			}); allowed != chains {
				t.Errorf("%s of %s at %s: allowed %t, with chains %t: %+v", o.ChildField, o.Child.Kind, o.At, allowed, chains, got.Changes)
			}
		}
	}
}

// onlySeen checks that nothing is allowed that no log shows.
func onlySeen(t *testing.T, s suggestion.Suggestion, logs []*recording) {
	t.Helper()

	seen := map[string]bool{}

	for _, log := range logs {
		for _, o := range log.observed(t) {
			seen[o.Child.Kind+" "+regexp.MustCompile(`\[\d+\]`).ReplaceAllString(o.ChildField, "[*]")] = true
		}
	}

	for _, p := range s.Policies {
		for _, a := range p.Policy.Spec.Allow {
			for _, mutation := range a.Mutations {
				if a.Relation != v1alpha1.RelationExternal && !seen[a.Kind+" "+mutation] {
					t.Errorf("%s allows %s of %s, which was not seen", p.Policy.Name, mutation, a.Kind)
				}
			}
		}
	}
}

// TestWhatIsSuggestedOfALogLetsThroughWhatIsRecorded of Compositions by another function, in
// both modes, and what nobody changed is held as before.
func TestWhatIsSuggestedOfALogLetsThroughWhatIsRecorded(t *testing.T) {
	for name, p := range plays(t) {
		for _, mode := range []v1alpha1.Mode{v1alpha1.ModeAudit, v1alpha1.ModeHold} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				m := p.material(t)
				s, policies, logs := p.suggested(t, m, mode)

				t.Log(s.Manifest())
				onlySeen(t, s, logs)

				for _, log := range logs {
					log.replayed(t, s)
				}

				for _, c := range p.Changes {
					t.Run(c.Field, func(t *testing.T) {
						t.Run("Asked", func(t *testing.T) { c.seen(t, p.world(t, m, policies)) })
						t.Run("NotAsked", func(t *testing.T) { c.notAsked(t, p.world(t, m, policies)) })
					})
				}
			})
		}
	}
}
