// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/usage"
)

const (
	// envParents is how many parents there are, if not defaultParents.
	envParents     = "PARENTS"
	defaultParents = 10_000
	// parentsPerPolicy makes them 1,000 policies by default, and as many bindings.
	parentsPerPolicy = 10
	// creators is how many objects are created at once.
	creators = 20
	// calm is how long memory must not grow to count as what is needed.
	calm = 2 * time.Second
)

// BenchmarkMemory measures how much memory our manager has after 10,000 parents of some 3 KiB and 1,000
// policies were created (rss-MiB), the most it had (peak-MiB), and both again after it was restarted,
// when it reads all of them at once. Each time somebody is let change a parent before. With bindings there are as
// many of them as policies, and all policies and bindings have parameters. The environment variable PARENTS sets
// another number of parents; there is a policy for each ten of them. The stack is one that nothing else has used.
func BenchmarkMemory(b *testing.B) {
	if !usage.Known {
		b.Skip("the system does not tell how much memory a process has")
	}

	parents := parentCount(b)

	policies := parents / parentsPerPolicy

	for _, bindings := range []int{0, policies} {
		b.Run(fmt.Sprintf("parents=%d/policies=%d/bindings=%d/by=%s", parents, policies, bindings, byKausality), func(b *testing.B) {
			for b.Loop() {
				measureMemory(b, parents, policies, bindings)
			}
		})
	}
}

func measureMemory(b *testing.B, parents, policies, bindings int) {
	b.Helper()

	s, err := stack.Start(b.Context(), stack.Options{ManagerOnly: true, Governed: stack.Suite()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	}()

	c := newCluster(b, s)

	// 1. Everything there is to know. Nobody reconciles parents yet, so they are made as they would be.
	c.define(b, kindParent)
	c.createAll(b, parents, func(i int) client.Object { return newParent(i) })
	c.create(b, newObject(kindParent, nameAsked))

	if bindings > 0 {
		c.bind(b, policies, bindings)
	} else {
		c.createAll(b, policies, func(i int) client.Object { return newPolicy(i) })
		c.settled(b, policies)
	}

	// 2. After it was created.
	c.known(b, parents)
	c.asked(b, policies, bindings)
	reportMemory(b, c.manager(), "")

	// 3. After it was read anew.
	if err := s.Process(managerName).Restart(b.Context()); err != nil {
		b.Fatal(err)
	}

	c.known(b, parents)
	c.asked(b, policies, bindings)
	reportMemory(b, c.manager(), "restarted-")
}

// settled waits until all policies are in force.
func (c *cluster) settled(tb testing.TB, policies int) {
	tb.Helper()

	eventually(tb, "all policies in force", func(ctx context.Context) error {
		list := &v1alpha1.AllowancePolicyList{}
		if err := c.admin.List(ctx, list); err != nil {
			return err
		}

		ready := 0

		for _, p := range list.Items {
			if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}

		if ready < policies {
			return fmt.Errorf("%d policies are in force", ready)
		}

		return nil
	})
}

// known waits until the manager has had a look at each parent.
func (c *cluster) known(tb testing.TB, parents int) {
	tb.Helper()

	eventually(tb, "a look at each parent", func(ctx context.Context) error {
		n, err := c.counted(ctx, "controller_runtime_reconcile_total", `controller="parent.`+group+`"`)
		if err == nil && n < float64(parents) {
			err = fmt.Errorf("%v parents are seen", n)
		}

		return err
	})
}

// reportMemory reports how much memory a process has once that is calm.
func reportMemory(b *testing.B, pid int, prefix string) {
	b.Helper()

	now, peak := calmMemory(b, pid)
	b.ReportMetric(now, prefix+"rss-MiB")
	b.ReportMetric(peak, prefix+"peak-MiB")
}

// calmMemory returns how much memory a process has once that does not grow any more, and the most it had.
func calmMemory(b *testing.B, pid int) (now, peak float64) {
	b.Helper()

	var (
		was   float64
		since time.Time
	)

	eventually(b, "rest of the process", func(context.Context) error {
		var err error
		if peak, err = usage.Memory(pid, usage.Peak); err != nil {
			return err
		}

		if peak > was {
			was, since = peak, time.Now()
		}

		if left := calm - time.Since(since); left > 0 {
			return fmt.Errorf("its memory grew to %v MiB", peak)
		}

		return nil
	})

	now, err := usage.Memory(pid, usage.Resident)
	if err != nil {
		b.Fatal(err)
	}

	return now, peak
}

// createAll creates n objects, several at once.
func (c *cluster) createAll(tb testing.TB, n int, object func(i int) client.Object) {
	tb.Helper()
	c.each(tb, n, func(i int) error { return c.admin.Create(tb.Context(), object(i)) })
}

// each does something n times, several at once.
func (c *cluster) each(tb testing.TB, n int, do func(i int) error) {
	tb.Helper()

	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)

	for range creators {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					tb.Error(err)

					return
				}
			}
		})
	}

	wg.Wait()

	if tb.Failed() {
		tb.FailNow()
	}
}

// initiator is who asked for what the parents have allowed.
const initiator = "hans@example.com"

// newParent makes a parent of some 3 KiB: an object as others are, that has allowed a change.
func newParent(i int) *unstructured.Unstructured {
	u := newObject(kindParent, fmt.Sprintf("parent-%d", i))
	trace := []v1alpha1.Hop{{
		Kind: kindParent, Name: u.GetName(), Generation: 12, Field: "spec.size",
		Attestations: map[string]string{"metadata.annotations[jira]": "INFRA-23232"},
	}}

	u.SetAnnotations(map[string]string{
		"jira":                         "INFRA-23232",
		v1alpha1.AnnotationInitialized: `{"v":1}`,
		v1alpha1.AnnotationTrace: allowance.FormatList([]v1alpha1.TraceEntry{{
			Field: "spec.size", Generation: 12, Initiator: initiator, Trace: trace,
		}}),
		v1alpha1.AnnotationAllowances: allowance.FormatList([]v1alpha1.Allowance{{
			APIGroup: group, Kind: kindParent, Mutation: "spec.size", Generation: 12, ID: allowance.ID(12, 0), Initiator: initiator,
			Policy: "parent-1", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: "parent-1", Field: "spec.size"}, Trace: trace,
		}}),
	})

	return u
}

// settingFor is the setting that a policy is about, as others are.
func settingFor(i int) string { return fmt.Sprintf("setting-%02d", i%settings) }

// newPolicy makes a policy about a change of parents, with an expression of its own.
func newPolicy(i int) *v1alpha1.AllowancePolicy {
	return &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("parent-%d", i)},
		Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{
				APIGroup: group, Kind: kindParent, Fields: []string{"spec.settings." + settingFor(i), "spec.size"},
				CEL: []string{fmt.Sprintf("%s && object.spec.size < %d", expression, i)}, Capture: []string{"metadata.annotations[jira]"},
			},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
			Allow: []v1alpha1.Permission{{
				APIGroup: group, Kind: kindParent, Relation: v1alpha1.RelationChild, Mutations: []string{"spec.size"},
			}},
		},
	}
}
