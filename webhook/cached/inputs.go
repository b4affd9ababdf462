// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kausality-io/kausality-crossplane/internal/current"
)

// Inputs are what decisions are made by, and the kinds that policies and windows name.
type Inputs struct {
	Inputs *current.Inputs

	last atomic.Pointer[InForce]
}

// InForce is what is in force at a moment; never modified.
type InForce struct {
	Snapshot *current.Snapshot

	// Kinds are those that policies and windows name.
	Kinds namedKinds
}

// NewInputs makes Inputs that follow the informers of a cache, which starts
// later.
func NewInputs(ctx context.Context, c cache.Cache) (*Inputs, error) {
	in, err := current.Following(ctx, c)
	if err != nil {
		return nil, err
	}

	return &Inputs{Inputs: in}, nil
}

// Get returns what there is now; where that cannot be read, what there was last beside the
// error, or nil where nothing was read yet.
func (in *Inputs) Get(ctx context.Context) (*InForce, error) {
	s, err := in.Inputs.Get(ctx)
	if err != nil {
		s = in.Inputs.Last()
	}

	return in.of(s), err
}

// of is a snapshot with the kinds that it names, which are found once.
func (in *Inputs) of(s *current.Snapshot) *InForce {
	if s == nil {
		return nil
	}

	if last := in.last.Load(); last != nil && last.Snapshot == s {
		return last
	}

	out := &InForce{Snapshot: s, Kinds: kindsOf(s.Objects.Policies, s.Objects.Windows)}
	in.last.Store(out)

	return out
}
