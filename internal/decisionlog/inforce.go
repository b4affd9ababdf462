// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// digestBytes is how much of the SHA-256 of what is in force its digest has.
const digestBytes = 16

// maxLines is of how many that were in force the lines are remembered: functions run for
// several composite resources at once.
const maxLines = 8

// lines remembers the lines of what is in force: it seldom changes, and encoding it may
// take longer than a decision.
type lines struct {
	mu   sync.Mutex
	last []line
	next int
}

// line is what is in force, encoded.
type line struct {
	policies     *policy.Set
	bindings     *policy.Bindings
	upgrades     []*allowance.Window
	enforcements []*enforcement.Enforcement

	digest string
	text   []byte
}

// of is the digest and the line of what is in force.
func (l *lines) of(b request.Basis) (string, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if i := slices.IndexFunc(l.last, func(have line) bool { return have.is(b) }); i >= 0 {
		return l.last[i].digest, l.last[i].text, nil
	}

	digest, text, err := encodeInForce(inforce.ObjectsOf(b))
	if err != nil {
		return "", nil, err
	}

	out := line{
		policies: b.Policies, bindings: b.Bindings, upgrades: b.Upgrades, enforcements: b.Enforcements, digest: digest, text: text,
	}

	if len(l.last) < maxLines {
		l.last = append(l.last, out)
	} else {
		l.last[l.next%maxLines], l.next = out, l.next+1
	}

	return digest, text, nil
}

// is reports whether it is of a basis: by the identity of what was compiled, which is not
// modified.
func (l *line) is(b request.Basis) bool {
	return l.policies == b.Policies && l.bindings == b.Bindings && slices.Equal(l.upgrades, b.Upgrades) &&
		slices.Equal(l.enforcements, b.Enforcements)
}

func encodeInForce(in inforce.Objects) (string, []byte, error) {
	out := InForce{
		Header: Header{Version, KindInForce}, Policies: in.Policies, Bindings: in.Bindings, Windows: in.Windows, Enforcements: in.Enforcements,
	}

	raw, err := encodeLine(out)
	if err != nil {
		return "", nil, fmt.Errorf("cannot encode what is in force: %w", err)
	}

	sum := sha256.Sum256(raw)
	out.Digest = hex.EncodeToString(sum[:digestBytes])

	if raw, err = encodeLine(out); err != nil {
		return "", nil, fmt.Errorf("cannot encode what is in force: %w", err)
	}

	return out.Digest, raw, nil
}

// Objects are those that were in force.
func (i *InForce) Objects() inforce.Objects {
	return inforce.Objects{Policies: i.Policies, Bindings: i.Bindings, Windows: i.Windows, Enforcements: i.Enforcements}
}
