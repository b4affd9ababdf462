// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// errInForce is the cause where a log does not say what was in force.
var errInForce = errors.New("what was in force is not in the log before it")

// verdict is what comes of a record that is decided again.
type verdict struct {
	// elsewhere is true where it is about a kind that is not asked about.
	elsewhere bool
	// retried is true where who asked was told to ask again, and other policies decide.
	retried bool
	// otherwise is true where the same is decided in other words, by other policies or of what
	// is masked.
	otherwise bool
	// changes are what is decided otherwise, and now of the whole of it.
	changes []change
	now     turn
	// unknown is what would have to be known to decide.
	unknown []string
	// err is why the record cannot be read.
	err error
}

// turn is what a decision turns into.
type turn int

const (
	// turnOther is neither of the others: it is denied instead of held, for instance.
	turnOther turn = iota
	// turnAllowed lets all of it through that was not before.
	turnAllowed
	// turnUnallowed does not let something through that was before.
	turnUnallowed
)

// again decides the record of a line again.
func (l *logged) again(in *numbered) (out verdict) {
	defer func() {
		if r := recover(); r != nil {
			out = verdict{err: fmt.Errorf("cannot decide again: internal error: %v", r)}
		}
	}()

	d := &decisionlog.Decision{}
	if err := json.Unmarshal(in.text, d); err != nil {
		return verdict{err: fmt.Errorf("cannot read decision: %w", err)}
	}

	if gk, _, _ := about(d); l.about != nil && !l.about(gk) {
		return verdict{elsewhere: true}
	}

	basis := l.of(in, d.InForce)
	if basis == nil {
		return verdict{err: fmt.Errorf("cannot decide again: %w: %q", errInForce, d.InForce)}
	}

	by, unknown := l.setsFor(basis, d.By), &decisionlog.Unknown{}

	req, err := d.Request(by.now, unknown)
	if err != nil {
		return verdict{err: fmt.Errorf("cannot decide again: %w", err)}
	}

	l.nameResource(d, &req)

	return l.compare(d, &req, by, unknown)
}

// nameResource names the resource as the function does, which knows it by Enforcements.
func (l *logged) nameResource(d *decisionlog.Decision, req *request.Request) {
	if d.By.Part != decisionlog.PartFunction || len(l.policies.Enforcements) == 0 {
		return
	}

	u := req.New
	if u == nil {
		u = req.Old
	}

	req.Resource = enforcement.ResourcesOf(l.policies.Enforcements).Of(u.GroupVersionKind().GroupKind())
}

// compare decides a request, and compares that with the record.
func (l *logged) compare(d *decisionlog.Decision, req *request.Request, by *sets, unknown *decisionlog.Unknown) verdict {
	others := l.policies.given()
	if others && d.Outcome.Do == decision.Retry {
		return verdict{retried: true}
	}

	l.chain.give(req)
	out := d.Decide(*req)
	l.chain.note(d, &out)
	by.addUnknown(d, req, unknown)

	if what := unknown.What(); len(what) > 0 {
		return verdict{unknown: what}
	}

	if others {
		out.Conflict = "" // What is stored was stamped by the policies of then.
	}

	is := decisionlog.OutcomeOf(&out)

	same, err := sameOutcome(&d.Outcome, &is)
	if err != nil {
		return verdict{err: fmt.Errorf("cannot compare: %w", err)}
	}

	if same {
		return verdict{}
	}

	c := comparison{record: d, was: &d.Outcome, is: &is}

	changes := c.changes()
	if len(changes) == 0 && (others || d.Masked) { // What is masked may be in the words of why.
		return verdict{otherwise: true}
	}

	if len(changes) == 0 {
		changes = []change{c.wording()}
	}

	return verdict{changes: changes, now: c.turn()}
}

// sameOutcome reports whether two outcomes are the same, byte for byte.
func sameOutcome(a, b *decisionlog.Outcome) (bool, error) {
	was, wasErr := json.Marshal(a)
	is, isErr := json.Marshal(b)

	return bytes.Equal(was, is), errors.Join(wasErr, isErr)
}

// about is the object of a record.
func about(d *decisionlog.Decision) (schema.GroupKind, string, string) {
	u := &unstructured.Unstructured{Object: d.New}
	if d.New == nil {
		u.Object = d.Old
	}

	return u.GroupVersionKind().GroupKind(), u.GetNamespace(), strings.TrimSpace(resource.Name(u))
}
