// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/function-sdk-go/logging"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	// maxReports is of how many XRs is remembered what is held of what they compose.
	// Where more hold something, what was logged of the others is logged again.
	maxReports = 4096
	// maxReportLines is how many held changes of one XR are logged, by resource and
	// field; of the others only how many they are.
	maxReportLines = 64
)

// reports remembers what the log says is held: a pipeline runs again and again with
// the same outcome.
type reports struct {
	mu  sync.Mutex
	xrs *lru.Cache
	// shadows are digests of what was said of Shadow mode, by XR.
	shadows *lru.Cache
}

func newReports() *reports { return &reports{xrs: lru.New(maxReports), shadows: lru.New(maxReports)} }

// heldField is what is held: a field of a composed resource, or create or delete.
type heldField struct{ resource, field string }

// heldLine is what the log says of it.
type heldLine struct {
	change v1alpha1.HeldChange
	passed bool
	// policies and outcome say more, but are no news.
	policies []finding.Source
	outcome  composition.Result
}

// digest distinguishes one line from another.
func (l heldLine) digest() [sha256.Size]byte {
	c := l.change

	return sha256.Sum256(fmt.Appendf(nil, "%q %t", []string{c.Field, c.From, c.To, c.Missing, c.Digest, c.At}, l.passed))
}

// heldSet is what is held of all that an XR composes.
type heldSet struct {
	lines map[heldField]heldLine
	// more is how many changes there are beside.
	more int
}

// saidSet is what was said of that.
type saidSet struct {
	lines map[heldField][sha256.Size]byte
	more  int
}

// log logs what is held and was not before, and what was and is no more.
func (t *reports) log(log logging.Logger, s *state) {
	now := s.heldSet()
	was := t.swap(keyOf(s.xr), now)

	log = log.WithValues("xrGroup", s.xr.GroupVersionKind().Group, "xrKind", s.xr.GetKind(), "xrNamespace", s.xr.GetNamespace(),
		"xr", s.xr.GetName(), "generation", resource.Generation(s.xr))

	for _, at := range sortedFields(now.lines) {
		line := now.lines[at]
		if before, known := was.lines[at]; known && line.digest() == before {
			continue
		}

		message := "Held a change"
		if line.passed {
			message = "Let a change pass that is not allowed"
		}

		log.Info(message, "resource", at.resource, "field", at.field, "stays", line.change.From, "asked", line.change.To,
			"missing", line.change.Missing, "policies", texts(line.policies), "enforcements", texts(line.outcome.Enforcements),
			"attestations", line.outcome.Attestations)
	}

	if now.more != was.more {
		log.Info("Held more changes than are listed", "more", now.more)
	}

	s.logShadow(log, t)

	for _, at := range sortedFields(was.lines) {
		if _, still := now.lines[at]; !still && now.more == 0 {
			s.release(log, at)
		}
	}
}

// logShadow logs what would be decided otherwise if what is in Shadow mode were enforced,
// where that is something else than before.
func (s *state) logShadow(log logging.Logger, t *reports) {
	type line struct {
		resource, would string
		by              decision.InShadow
	}

	var lines []line

	for _, name := range s.names {
		for _, f := range s.outcomes[name].Shadow {
			lines = append(lines, line{name, decision.ShadowText(f), f.By})
		}
	}

	if !t.news(keyOf(s.xr), lines) {
		return
	}

	for _, l := range lines[:min(len(lines), maxReportLines)] {
		log.Info("Would be decided otherwise without Shadow mode", "resource", l.resource, "would", l.would,
			"policy", l.by.Policy, "condition", l.by.Condition)
	}
}

// news reports whether something is said of an XR's Shadow mode that was not said last.
func (t *reports) news(key string, said any) bool {
	digest := sha256.Sum256(fmt.Appendf(nil, "%q", said))

	t.mu.Lock()
	defer t.mu.Unlock()

	if was, _ := t.shadows.Get(key); was == digest {
		return false
	}

	t.shadows.Add(key, digest)

	return true
}

// release logs that a change is held no more, and what lets it through if
// anything does: it may also be asked for no longer.
func (s *state) release(log logging.Logger, at heldField) {
	log = log.WithValues("resource", at.resource, "field", at.field)

	for _, name := range s.names {
		out := s.outcomes[name]
		for _, p := range out.Passed {
			if p.Resource == at.resource && p.Field == at.field {
				log.Info("Let a held change through", "initiator", p.Initiator, "policies", texts(p.Policies),
					"enforcements", texts(out.Enforcements), "attestations", out.Attestations)

				return
			}
		}
	}

	log.Info("A change is no longer held")
}

// swap remembers what is held now, and returns what was.
func (t *reports) swap(key string, now heldSet) saidSet {
	t.mu.Lock()
	defer t.mu.Unlock()

	var was saidSet
	if v, ok := t.xrs.Get(key); ok {
		was, _ = v.(saidSet)
	}

	if len(now.lines) == 0 {
		t.xrs.Remove(key)

		return was
	}

	kept := saidSet{lines: make(map[heldField][sha256.Size]byte, len(now.lines)), more: now.more}
	for at, line := range now.lines {
		kept.lines[at] = line.digest()
	}

	t.xrs.Add(key, kept)

	return was
}

// heldSet is what is held of all that the XR composes. What is held of the XR
// itself is in the manager's log.
func (s *state) heldSet() heldSet {
	out := heldSet{lines: map[heldField]heldLine{}}

	for _, name := range s.names {
		outcome := s.outcomes[name]
		for _, h := range outcome.Held {
			at := heldField{resource: h.Resource, field: h.Change.Field}
			if _, known := out.lines[at]; !known && len(out.lines) == maxReportLines {
				out.more++

				continue
			}

			out.lines[at] = heldLine{change: h.Change, passed: h.Passed, policies: h.Policies, outcome: outcome}
		}
	}

	return out
}

func sortedFields[V any](lines map[heldField]V) []heldField {
	return slices.SortedFunc(maps.Keys(lines), func(a, b heldField) int {
		return cmp.Or(strings.Compare(a.resource, b.resource), strings.Compare(a.field, b.field))
	})
}

// keyOf distinguishes XRs.
func keyOf(xr *unstructured.Unstructured) string {
	if uid := xr.GetUID(); uid != "" {
		return string(uid)
	}

	return strings.Join([]string{xr.GetAPIVersion(), xr.GetKind(), xr.GetNamespace(), xr.GetName()}, "/")
}

// texts are policies and the like as NAME@GENERATION.
func texts(list []finding.Source) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}

	return out
}
