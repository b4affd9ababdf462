// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/usage"
)

// BenchmarkGates measures the gate controller beside 10,000 managed resources of some 5 KiB, whose
// gates are closed, and their 1,000 composites. The environment variable PARENTS sets another number of
// resources. The stack is one that nothing else has used.
//
// Start: from the start of our manager's process until it has reconciled each managed resource
// (start-s), and its memory then (rss-MiB) and at most (peak-MiB); beside bare controllers that reconcile
// the same objects, whole or only at their metadata.
//
// Move: see [gates.move].
func BenchmarkGates(b *testing.B) {
	if !usage.Known {
		b.Skip("the system does not tell how much memory a process has")
	}

	g := startGates(b, parentCount(b))

	g.start(b, byKausality, func(b *testing.B) int {
		b.Helper()

		if err := g.stack.Process(managerName).Restart(b.Context()); err != nil {
			b.Fatal(err)
		}

		g.looked(b)

		return g.manager()
	})

	for _, mode := range []floorMode{floorWhole, floorMetadata} {
		g.start(b, approach(mode), func(b *testing.B) int {
			b.Helper()

			return g.startFloor(b, kindManaged, mode, g.objects).Process.Pid
		})
	}

	g.startFloor(b, kindFloor, floorMoves, g.objects)

	for _, rate := range []int{1, 100} {
		b.Run(fmt.Sprintf("move/rate=%d/objects=%d/by=%s", rate, g.objects, byKausality), func(b *testing.B) { g.move(b, rate) })
	}
}

// parentCount is how many objects there are to be where that matters.
func parentCount(tb testing.TB) int {
	tb.Helper()

	text := os.Getenv(envParents)
	if text == "" {
		return defaultParents
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(err)
	}

	return n
}

// gates is a cluster with managed resources.
type gates struct {
	*cluster

	objects int
	// machine writes as our manager does, which alone may.
	machine client.WithWatch
	// changes counts what was asked for of each kind.
	changes map[string]int
}

// startGates starts a stack with managed resources, and as many objects for the floor.
func startGates(b *testing.B, objects int) *gates {
	b.Helper()

	s, err := stack.Start(b.Context(), stack.Options{ManagerOnly: true, Governed: stack.Suite()})
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	})

	cfg := s.Config()
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + stack.KausalityNamespace + ":" + managerName,
		Groups:   []string{"system:masters"},
	}

	machine, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		b.Fatal(err)
	}

	g := &gates{cluster: newCluster(b, s), objects: objects, machine: machine, changes: map[string]int{}}

	// 1. Objects as they are after some time. Nobody reconciles them yet, so they are made as they would be.
	g.populate(b)

	// 2. From here on they are governed.
	g.create(b, compositePolicy())
	g.inForce(b, "AllowancePolicy", compositePolicy().Name)
	g.looked(b)

	return g
}

func (g *gates) populate(b *testing.B) {
	b.Helper()

	if err := g.admin.Create(b.Context(), compositeCRD()); err != nil {
		b.Fatal(err)
	}

	g.served(b, kindComposite)

	composites := make([]*unstructured.Unstructured, (g.objects+managedPerComposite-1)/managedPerComposite)
	g.createAll(b, len(composites), func(i int) client.Object {
		composites[i] = newComposite(i, managedPerComposite)

		return composites[i]
	})

	for _, kind := range []string{kindManaged, kindFloor} {
		definition := managedCRD(kind, false)
		if err := g.admin.Create(b.Context(), definition); err != nil {
			b.Fatal(err)
		}

		g.served(b, kind)
		g.createAll(b, g.objects, func(i int) client.Object { return newManaged(b, kind, i, composites[i/managedPerComposite]) })

		definition.Spec = managedCRD(kind, true).Spec
		eventually(b, "status of "+kind, func(ctx context.Context) error {
			if err := g.admin.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
				return err
			}

			definition.Spec.Versions = managedCRD(kind, true).Spec.Versions

			return g.admin.Update(ctx, definition)
		})
	}
}

// looked waits until the manager has reconciled each managed resource.
func (g *gates) looked(tb testing.TB) {
	tb.Helper()

	eventually(tb, "a look at each managed resource", func(ctx context.Context) error {
		n, err := g.counted(ctx, "controller_runtime_reconcile_total", `controller="managed.`+group+`"`)
		if err == nil && n < float64(g.objects) {
			err = fmt.Errorf("%v managed resources are looked at", n)
		}

		return err
	})
}

// start measures how a process starts; begin starts it, waits until it has reconciled everything, and
// returns its number.
func (g *gates) start(b *testing.B, by approach, begin func(b *testing.B) int) {
	b.Helper()

	b.Run(fmt.Sprintf("start/objects=%d/by=%s", g.objects, by), func(b *testing.B) {
		var took time.Duration

		for b.Loop() {
			began := time.Now()
			pid := begin(b)
			took = time.Since(began)

			b.StopTimer()
			reportMemory(b, pid, "")
			b.StartTimer()
		}

		b.ReportMetric(took.Seconds(), "start-s")
	})
}
