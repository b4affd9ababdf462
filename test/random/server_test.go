// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// pace is how often a test checks for what it expects, while processes come and
// go.
const pace = 150 * time.Millisecond

// eventually looks until a check passes.
func eventually(ctx context.Context, what string, check func(context.Context) error) error {
	var last error

	err := wait.PollUntilContextTimeout(ctx, pace, patience.Limit, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}

		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s did not happen within %s: %w", what, patience.Limit, last)
	}

	return nil
}

// server is one managed resource of a test.
type server struct {
	cast

	namespace, name string
}

func (s server) live(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(serverKind())

	return u, s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, u)
}

// reference is what names the server in a request.
func (s server) reference() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(serverKind())
	u.SetNamespace(s.namespace)
	u.SetName(s.name)

	return u
}

// make has Crossplane make it, until the API server takes it.
func (s server) make(ctx context.Context, traits []any, p parameters) error {
	return eventually(ctx, "creation", func(ctx context.Context) error {
		err := s.crossplane.Create(ctx, newServer(s.namespace, s.name, traits, p))
		if apierrors.IsAlreadyExists(err) {
			return nil // The answer to an earlier attempt was lost.
		}

		return err
	})
}

// change has hans change parameters, until the API server takes it; nil takes one
// away.
func (s server) change(ctx context.Context, p parameters) error {
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"forProvider": p}})
	if err != nil {
		return err
	}

	return eventually(ctx, "hans's change", func(ctx context.Context) error {
		return s.hans.Patch(ctx, s.reference(), world.Merge(string(raw)))
	})
}

// closed checks that the gate is closed, and no allowance left.
func (s server) closed(ctx context.Context) error {
	u, err := s.live(ctx)
	if err != nil {
		return err
	}

	rec, err := allowance.ParseGate(u)
	if err != nil {
		return err
	}

	if rec == nil || rec.State != v1alpha1.GateClosed {
		return fmt.Errorf("the gate is %+v: %w", rec, world.ErrOther)
	}

	list, err := allowance.Parse(u)
	if err != nil || len(list) > 0 {
		return fmt.Errorf("%d allowances are left: %w", len(list), errors.Join(err, world.ErrOther))
	}

	return nil
}

// shows checks that the external object is as it is to be.
func (s server) shows(want parameters) error {
	state, ok := outside.State(s.name)
	if !ok {
		return fmt.Errorf("there is no external object: %w", world.ErrOther)
	}

	if !same(want, state) {
		return fmt.Errorf("the external object is %v, want %v: %w", state, want, world.ErrOther)
	}

	return nil
}

// settled checks both.
func (s server) settled(want parameters) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.closed(ctx); err != nil {
			return err
		}

		return s.shows(want)
	}
}

// same reports whether a payload or an external object is what was asked for, with
// what was filled in besides.
func same(want, have parameters) bool {
	have = maps.Clone(have)

	for key, value := range map[string]any{"zone": external.Zone, "image": image} {
		if _, asked := want[key]; !asked && have[key] == value {
			delete(have, key)
		}
	}

	return change.Equal(want, have)
}
