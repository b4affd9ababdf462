// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/peer"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// cluster is a stack with the clients that write to it.
type cluster struct {
	stack *stack.Stack

	// admin sets things up.
	admin client.Client
	// hans may start a chain.
	hans client.Client
	// anna may only carry one on, as a controller does.
	anna client.Client
	// raw reads what is no object.
	raw rest.Interface
}

// fixture is a cluster in which all approaches are configured.
type fixture struct {
	*cluster

	peer  *peer.Peer
	owner *unstructured.Unstructured

	// targets that there are by now, of each kind.
	targets map[string][]*target
}

var (
	setUp  sync.Once
	shared *fixture
)

// setup configures the shared stack, once.
func setup(tb testing.TB) *fixture {
	tb.Helper()

	setUp.Do(func() {
		f := &fixture{cluster: newCluster(tb, running), targets: map[string][]*target{}}
		f.define(tb, kindOwner)

		for _, a := range approaches() {
			for _, r := range roles() {
				f.define(tb, kindOf(a, r))
			}
		}

		f.configureKausality(tb)
		f.configurePolicy(tb)
		f.peer = peer.Start(tb, f.stack.Dir())
		f.configurePeer(tb, byAllowAll, peer.MutatePath)
		f.configurePeer(tb, byStamp, peer.StampPath)
		f.probe(tb)

		shared = f
	})

	if shared == nil {
		tb.Fatal("the stack could not be set up")
	}

	return shared
}

// newCluster connects to a stack.
func newCluster(tb testing.TB, s *stack.Stack) *cluster {
	tb.Helper()

	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			tb.Fatal(err)
		}
	}

	connect := func(config *rest.Config, err error) client.Client {
		if err != nil {
			tb.Fatal(err)
		}

		config.QPS = -1
		config.WarningHandler = rest.NoWarnings{} // Of a name that Crossplane gives a finalizer.

		c, err := client.New(config, client.Options{Scheme: known})
		if err != nil {
			tb.Fatal(err)
		}

		return c
	}

	raw, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		tb.Fatal(err)
	}

	return &cluster{
		stack: s, admin: connect(s.Config(), nil), raw: raw.RESTClient(),
		hans: connect(s.ConfigFor("hans")), anna: connect(s.ConfigFor("anna")),
	}
}

// eventually looks until a check passes.
func eventually(tb testing.TB, what string, check func(ctx context.Context) error) {
	tb.Helper()

	if err := scenario.Eventually(tb.Context(), what, check); err != nil {
		tb.Fatal(err)
	}
}

// define defines a kind and waits until it is served.
func (c *cluster) define(tb testing.TB, kind string) {
	tb.Helper()

	if err := c.admin.Create(tb.Context(), crd(kind)); err != nil {
		tb.Fatal(err)
	}

	c.served(tb, kind)
}

// served waits until a kind is served.
func (c *cluster) served(tb testing.TB, kind string) {
	tb.Helper()

	eventually(tb, "serving of "+kind, func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvkOf(kind))

		return c.admin.List(ctx, list, client.Limit(1))
	})
}

// create creates objects as the administrator.
func (c *cluster) create(tb testing.TB, objects ...client.Object) {
	tb.Helper()

	for _, o := range objects {
		if err := c.admin.Create(tb.Context(), o); err != nil {
			tb.Fatal(err)
		}
	}
}

// inForce waits until a policy or an Enforcement is in force.
func (c *cluster) inForce(tb testing.TB, kind, name string) {
	tb.Helper()

	eventually(tb, kind+" "+name+" in force", func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))

		if err := c.admin.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
			return err
		}

		if !resource.Ready(u) {
			return fmt.Errorf("its status is %v", u.Object["status"])
		}

		return nil
	})
}
