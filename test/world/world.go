// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	_ "embed" // Of the databases.
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

//go:embed databases.yaml
var databases []byte

// World is the control plane, as who has databases there sees it. Its own client
// is the administrator's.
type World struct {
	client.Client

	// Hans is a person whom the policies let change sizes.
	Hans client.Client
	// Crossplane has Crossplane's name, by which a gate knows who composes.
	Crossplane client.Client

	// round is held by the provider while it works; idle has it do nothing.
	round sync.Mutex
	idle  bool
}

// Kind is one of the kinds of the world: Database, in a namespace, Region, in
// none, and Estate, which owns databases and is no managed resource.
func Kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sql.example.org", Version: "v1", Kind: name}
}

// New applies the kinds and the policies of databases, and has the provider work
// until the test ends. The stack has an API server and a manager.
func New(t *testing.T, s *stack.Stack) *World {
	t.Helper()

	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:crossplane-system:crossplane", Groups: []string{"system:masters"},
	}

	w := &World{Client: Connect(t, s.Config()), Hans: ConnectAs(t, s, "hans"), Crossplane: Connect(t, config)}

	for _, u := range Parse(t, databases) {
		Apply(t, w, u)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		w.provide(ctx)
	}()

	t.Cleanup(func() { cancel(); <-done })

	return w
}
