// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	given "github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/usage"
)

const (
	// parentsPerHold makes them 2,000 composites by default of which something is held.
	parentsPerHold = 5
	// heldPerComposite is how many changes are held of each.
	heldPerComposite = 2
	// crossplaneUser writes what the function says of a composite.
	crossplaneUser = "system:serviceaccount:" + stack.CrossplaneNamespace + ":crossplane"
)

// BenchmarkPending measures PendingChanges: 2,000 composites, each with a managed resource of which two changes are
// held, of which nothing was held before. The environment variable PARENTS sets five times another number. The stack
// is one that nothing else has used.
//
// hold: how long it takes from the first status that says so, where all are written as fast as that goes, until the
// last PendingChange has its list (hold-s), beside how long the statuses take to be written (floor-hold-s), and how
// many times as long that is (hold-x); writes of PendingChanges per object (writes/object), and after the manager was
// restarted, and has looked at all of them again (again-writes/object).
//
// memory: how much the process has after a restart with all of them held (rss-MiB), with nothing held
// (floor-rss-MiB), how many times as much that is (rss-x), and what is between them for each (KiB/object).
//
// list: how long kubectl kausality pending -A takes (list-s), beside kubectl get -o yaml of the same
// (floor-list-s), in turns, and how many times as long (list-x).
func BenchmarkPending(b *testing.B) {
	if !usage.Known {
		b.Skip("the system does not tell how much memory a process has")
	}

	objects := parentCount(b) / parentsPerHold

	for b.Loop() {
		measurePending(b, objects)
	}
}

func measurePending(b *testing.B, objects int) {
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

	h := newHolding(b, s, objects)

	// 1. Nothing is held.
	h.say(b, func(*unstructured.Unstructured) []v1alpha1.HeldChange { return nil })
	h.restart(b)
	floor, _ := calmMemory(b, h.manager())

	// 2. All of it is.
	began := time.Now()
	h.say(b, changesOf)
	wrote := time.Since(began)

	h.listed(b)
	took := time.Since(began)

	first := h.writes(b)

	b.ReportMetric(first/float64(objects), "writes/object")
	b.ReportMetric(took.Seconds(), "hold-s")
	b.ReportMetric(wrote.Seconds(), "floor-hold-s")
	b.ReportMetric(took.Seconds()/wrote.Seconds(), "hold-x")

	// 3. Once more.
	h.restart(b)
	h.atLeast(b, "pendingchange")

	held, _ := calmMemory(b, h.manager())

	b.ReportMetric((h.writes(b)-first)/float64(objects), "again-writes/object")
	b.ReportMetric(held, "rss-MiB")
	b.ReportMetric(floor, "floor-rss-MiB")
	b.ReportMetric(held/floor, "rss-x")
	b.ReportMetric((held-floor)*1024/float64(objects), "KiB/object")

	// 4. As somebody looks at it.
	h.list(b)
}

// holding is a cluster with composites of which something is held.
type holding struct {
	*cluster

	// composing writes as Crossplane does, which alone may say what is held.
	composing  client.Client
	composites []*unstructured.Unstructured
	managed    []*unstructured.Unstructured
}

func newHolding(b *testing.B, s *stack.Stack, objects int) *holding {
	b.Helper()

	cfg := s.Config()
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: crossplaneUser, Groups: []string{"system:masters"}}

	composing, err := client.New(cfg, client.Options{})
	if err != nil {
		b.Fatal(err)
	}

	h := &holding{
		cluster: newCluster(b, s), composing: composing,
		composites: make([]*unstructured.Unstructured, objects), managed: make([]*unstructured.Unstructured, objects),
	}

	// Nobody reconciles them yet, so they are made as they would be.
	h.create(b, compositeCRD())
	h.served(b, kindComposite)
	h.createAll(b, objects, func(i int) client.Object {
		h.composites[i] = newComposite(i, 1)

		return h.composites[i]
	})

	h.create(b, managedCRD(kindManaged, true))
	h.served(b, kindManaged)
	h.createAll(b, objects, func(i int) client.Object {
		h.managed[i] = newManaged(b, kindManaged, i, h.composites[i])

		return h.managed[i]
	})

	h.create(b, compositePolicy())
	h.inForce(b, "AllowancePolicy", compositePolicy().Name)

	return h
}

// changesOf are those that the function holds of a managed resource.
func changesOf(u *unstructured.Unstructured) []v1alpha1.HeldChange {
	out := make([]v1alpha1.HeldChange, 0, heldPerComposite)

	for i := range heldPerComposite {
		field := fmt.Sprintf("spec.forProvider.settings.setting-%02d", i)
		was, is := fmt.Sprintf("the value of setting %d of %s", i, u.GetName()), fmt.Sprintf("another value of setting %d", i)

		out = append(out, v1alpha1.HeldChange{
			Ref: pending.RefTo(u), ComposedResource: "resource", Field: field, From: was, To: is,
			Digest: digest.Of(digest.Change{
				Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update, Elements: []any{field}, From: was, To: is,
			}),
			Cause:   &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Revision: "composites-0a1b2c3"},
			Follows: []string{"Update"},
			Missing: "no policy about Composite lets " + field + " be changed: add an AllowancePolicy, or an UpgradeAllowance for a while",
		})
	}

	return out
}

// say writes of each composite that some changes of its managed resource are held.
func (h *holding) say(b *testing.B, held func(u *unstructured.Unstructured) []v1alpha1.HeldChange) {
	b.Helper()

	h.each(b, len(h.composites), func(i int) error {
		u := h.composites[i].DeepCopy()
		list := v1alpha1.State{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: u.GetGeneration()}, Changes: held(h.managed[i])}
		status, reason, message := "True", v1alpha1.ReasonAllowed, given.SettledMessage(u.GetGeneration())

		if len(list.Changes) > 0 {
			status, reason = "False", v1alpha1.ReasonHeld
			message += fmt.Sprintf("; %d held", len(list.Changes))
		}

		condition := func(typ, message string) map[string]any {
			return map[string]any{
				"type": typ, "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}
		}

		raw, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{
			condition(v1alpha1.ConditionKausality, message), condition(v1alpha1.ConditionState, resource.FormatState(list)),
		}}})
		if err != nil {
			return err
		}

		return h.composing.Status().Patch(b.Context(), u, client.RawPatch(types.MergePatchType, raw))
	})
}

// restart has the manager read all there is anew.
func (h *holding) restart(b *testing.B) {
	b.Helper()

	if err := h.stack.Process(managerName).Restart(b.Context()); err != nil {
		b.Fatal(err)
	}

	for _, kind := range []string{"composite", "managed"} {
		h.atLeast(b, kind+"."+group)
	}
}

// atLeast waits until a controller has reconciled as often as there are objects.
func (h *holding) atLeast(b *testing.B, controller string) {
	b.Helper()

	eventually(b, "a look at each by "+controller, func(ctx context.Context) error {
		n, err := h.counted(ctx, "controller_runtime_reconcile_total", `controller="`+controller+`"`)
		if err == nil && n < float64(len(h.composites)) {
			err = fmt.Errorf("%v are looked at", n)
		}

		return err
	})
}

// listed waits until each composite has a PendingChange that lists what is held.
func (h *holding) listed(b *testing.B) {
	b.Helper()

	eventually(b, "a list of each", func(ctx context.Context) error {
		list := &v1alpha1.PendingChangeList{}
		if err := h.admin.List(ctx, list); err != nil {
			return err
		}

		n := 0

		for i := range list.Items {
			if status := &list.Items[i].Status; status.Digest != "" && len(status.Changes) == heldPerComposite {
				n++
			}
		}

		if n < len(h.composites) {
			return fmt.Errorf("there are %d lists", n)
		}

		return nil
	})
}

// writes is how often PendingChanges were written, once that is calm.
func (h *holding) writes(b *testing.B) float64 {
	b.Helper()

	var (
		was   float64
		since time.Time
	)

	eventually(b, "rest of the writer", func(ctx context.Context) error {
		now, err := h.taken(ctx, "pendingchanges")
		if err != nil {
			return err
		}

		if now != was || since.IsZero() {
			was, since = now, time.Now()
		}

		if left := calm - time.Since(since); left > 0 {
			return fmt.Errorf("there were %v writes", now)
		}

		return nil
	})

	return was
}

// list measures how long the plugin takes to list them, and kubectl.
func (h *holding) list(b *testing.B) {
	b.Helper()

	ours := []string{filepath.Join(h.stack.BinDir(), "kubectl-kausality"), "pending", "-A"}
	theirs := []string{h.stack.Tools().Binary("kubectl"), "get", "pendingchanges", "-A", "-o", "yaml"}

	const turns = 5

	took, floor := make([]time.Duration, turns), make([]time.Duration, turns)

	for i := range turns {
		took[i], floor[i] = h.runs(b, ours), h.runs(b, theirs)
	}

	const millisecondsPerSecond = 1000

	b.ReportMetric(percentile(took, median)/millisecondsPerSecond, "list-s")
	b.ReportMetric(percentile(floor, median)/millisecondsPerSecond, "floor-list-s")
	b.ReportMetric(percentile(took, median)/percentile(floor, median), "list-x")
}

// runs is how long a command takes, which prints something of each object.
func (h *holding) runs(b *testing.B, command []string) time.Duration {
	b.Helper()

	cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.stack.Dir(), "kubeconfig"))

	began := time.Now()

	out, err := cmd.Output()
	took := time.Since(began)

	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		b.Fatalf("%v: %v: %s", command, err, exit.Stderr)
	}

	if err != nil || len(out) < len(h.composites) {
		b.Fatalf("%v: %v, and %d bytes", command, err, len(out))
	}

	return took
}
