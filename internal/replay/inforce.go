// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// maxInForce is how much of what was in force is remembered of one log, as bytes of its
// lines. Decisions refer to what was in force last, or to what is so for another kind.
const maxInForce = 64 * 1024 * 1024

// logged is what was in force, by digest, as one log says it before its decisions.
type logged struct {
	compiled *inforce.Cache
	policies *Policies
	about    func(schema.GroupKind) bool
	// chain is what follows; nil where each decision stands by itself.
	chain *chain

	mu       sync.Mutex
	byDigest map[string]*basis
	order    []*basis
	bytes    int
}

// basis is what decisions are made by, of what was in force.
type basis struct {
	digest string
	bytes  int
	// line in which it is said.
	line    int
	objects inforce.Objects

	mu sync.Mutex
	// sets are compiled, one for each that reads others of what there is.
	sets map[string]*sets
}

// sets are what was in force and what decisions are made by; the same where no others are
// given.
type sets struct {
	was, now *inforce.Set
	// readNamespaces is true where what was in force read namespaces, and readsNamespaces
	// where what decides now does.
	readNamespaces, readsNamespaces bool
	// expressions are those of what decides now.
	expressions []expression
	// unsure are the windows of which a log does not say whether they would have been active.
	unsure []v1alpha1.UpgradeAllowance
}

// add remembers what a line says was in force.
func (l *logged) add(text []byte, line int) error {
	var in decisionlog.InForce
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("cannot read what was in force: %w", err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.byDigest[in.Digest] != nil {
		return nil
	}

	b := &basis{digest: in.Digest, bytes: len(text), line: line, objects: in.Objects(), sets: map[string]*sets{}}
	l.byDigest[in.Digest] = b
	l.order = append(l.order, b)

	for l.bytes += b.bytes; l.bytes > maxInForce && len(l.order) > 1; l.order = l.order[1:] {
		l.bytes -= l.order[0].bytes
		delete(l.byDigest, l.order[0].digest)
	}

	return nil
}

// find is what was in force by its digest; nil where the log has not said that.
func (l *logged) find(digest string) *basis {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.byDigest[digest]
}

// of is what was in force when the decision of a line was made; nil where the log does not
// say that before.
func (l *logged) of(in *numbered, digest string) *basis {
	b := in.basis
	if b == nil || b.digest != digest {
		b = l.find(digest) // The line has its fields in another order.
	}

	if b == nil || b.line >= in.line {
		return nil
	}

	return b
}

// setsFor are what who decided a record reads.
func (l *logged) setsFor(b *basis, by decisionlog.By) *sets {
	reader := "webhook"
	if by.Composite != nil {
		reader = fmt.Sprint("function", by.Composite.PolicySelector)
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	if b.sets[reader] == nil {
		out := &sets{was: l.compiled.Set(b.objects), readNamespaces: b.objects.ReadNamespaces()}
		out.now, out.readsNamespaces = out.was, out.readNamespaces
		objects := b.objects

		if l.policies.given() {
			objects = l.policies.of(b.objects, by)
			out.now, out.readsNamespaces, out.unsure = l.compiled.Set(objects), objects.ReadNamespaces(), l.policies.unsure(b.objects.Windows)
		}

		out.expressions = expressionsOf(objects)
		b.sets[reader] = out
	}

	return b.sets[reader]
}

// addUnknown adds what decisions are made by and the record does not have, for nobody asked
// for it then.
func (s *sets) addUnknown(d *decisionlog.Decision, req *request.Request, unknown *decisionlog.Unknown) {
	gk, _, _ := about(d)

	if s.reads(gk, managedFields) {
		unknown.Add("who wrote which fields: " + managedFields)
	}

	if s.now == s.was {
		return
	}

	if d.Masked {
		for _, field := range maskedIn(d) {
			if s.reads(gk, field) {
				unknown.Add("what is masked: " + field)
			}
		}
	}

	if d.ParentTrimmed && req.ReadsParent() {
		unknown.Add("all of the parent")
	}

	object := d.New
	if object == nil {
		object = d.Old
	}

	meta, _ := object["metadata"].(map[string]any)
	if meta["namespace"] != nil && d.Namespace == nil && s.readsNamespaces && !s.readNamespaces {
		unknown.Add("the namespace")
	}

	asks := func(e *enforcement.Enforcement) bool { return e.AsksVersions(req.Resource) }
	if slices.ContainsFunc(s.now.Enforcements, asks) && !slices.ContainsFunc(s.was.Enforcements, asks) && d.Versions == nil {
		unknown.Add("in which versions the resource was served")
	}

	for _, w := range s.unsure {
		if !d.Time.Before(w.Spec.ValidFrom.Time) && d.Time.Before(w.Spec.ValidUntil.Time) {
			unknown.Add(fmt.Sprintf("whether UpgradeAllowance %q was active", w.GetName()))
		}
	}
}
