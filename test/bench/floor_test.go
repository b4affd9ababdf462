// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A floor is a bare controller of the same framework, in a process of its own: what any controller of
// these objects takes at least.
type floor struct {
	// Kubeconfig of the administrator.
	kubeconfig string
	// kind of the objects.
	kind string
	// mode is what it does.
	mode floorMode
	// objects is how many it reconciles before it says that it has.
	objects int
}

// floorMode is what a floor does.
type floorMode string

const (
	// floorWhole only reconciles whole objects.
	floorWhole floorMode = "whole-objects"
	// floorMetadata only reconciles their metadata.
	floorMetadata floorMode = "metadata-only"
	// floorMoves patches one field where our manager moves a gate.
	floorMoves floorMode = "bare-controller"
)

// envFloor makes this program a floor.
const envFloor = "KAUSALITY_BENCH_FLOOR"

// lookedAtAll is what a floor says when it has reconciled all objects.
const lookedAtAll = "looked at all"

func (f floor) encode() string {
	return fmt.Sprintf("%s,%s,%s,%d", f.kubeconfig, f.kind, f.mode, f.objects)
}

func decodeFloor(text string) (floor, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return floor{}, fmt.Errorf("cannot read floor %q", text)
	}

	f := floor{kubeconfig: parts[0], kind: parts[1], mode: floorMode(parts[2])}
	_, err := fmt.Sscan(parts[3], &f.objects)

	return f, err
}

// startFloor starts a floor and waits until it has reconciled all objects. It ends with the benchmark.
func (c *cluster) startFloor(tb testing.TB, kind string, mode floorMode, objects int) *exec.Cmd {
	tb.Helper()

	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}

	f := floor{kubeconfig: filepath.Join(c.stack.Dir(), "kubeconfig"), kind: kind, mode: mode, objects: objects}
	cmd := exec.Command(self) //nolint:noctx // It ends when its standard input does, so with us.
	cmd.Env = []string{envFloor + "=" + f.encode()}
	cmd.Stderr = os.Stderr

	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		_ = in.Close()

		if err := cmd.Wait(); err != nil {
			tb.Errorf("the %s ended: %v", mode, err)
		}
	})

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != lookedAtAll {
		tb.Fatalf("the %s said %q: %v", mode, line, err)
	}

	return cmd
}

// serveFloor runs a floor until standard input ends, and returns the exit code.
func serveFloor(text string) int {
	ctrl.SetLogger(logr.Discard())

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		cancel()
	}()

	f, err := decodeFloor(text)
	if err == nil {
		err = f.run(ctx)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return 0
}

func (f floor) run(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}

	cfg.QPS = -1

	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}

	var obj client.Object = newPrototype(f.kind)

	if f.mode == floorMetadata {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(gvkOf(f.kind))
		obj = meta
	}

	r := &floorReconciler{floor: f, client: mgr.GetClient()}

	err = ctrl.NewControllerManagedBy(mgr).Named("floor").For(obj).
		WithOptions(controller.Options{MaxConcurrentReconciles: floorConcurrency}).Complete(r)
	if err != nil {
		return err
	}

	return mgr.Start(ctx)
}

// floorConcurrency is how many objects it works on at once, as many as our manager does.
const floorConcurrency = 10

func newPrototype(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvkOf(kind))

	return u
}

// floorReconciler is the floor's reconciler.
type floorReconciler struct {
	floor

	client client.Client
	looked atomic.Int64
}

// Reconcile reads an object, and, where it is to, has one field of it follow from another.
func (r *floorReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if r.looked.Add(1) == int64(r.objects) {
		fmt.Fprintln(os.Stdout, lookedAtAll)
	}

	if r.mode == floorMetadata {
		u := &metav1.PartialObjectMetadata{}
		u.SetGroupVersionKind(gvkOf(r.kind))

		return reconcile.Result{}, client.IgnoreNotFound(r.client.Get(ctx, req.NamespacedName, u))
	}

	u := newPrototype(r.kind)
	if err := r.client.Get(ctx, req.NamespacedName, u); err != nil || r.mode != floorMoves {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	return reconcile.Result{}, r.move(ctx, u)
}

// move opens where the status does not show what is asked for, and closes where it does.
func (r *floorReconciler) move(ctx context.Context, u *unstructured.Unstructured) error {
	want, _ := resource.Value(u.Object, "spec", "forProvider", "size")
	is, _ := resource.Value(u.Object, "status", "atProvider", "size")

	policies := []string{"Observe", "LateInitialize"}
	if !change.Equal(want, is) {
		policies = append(policies, "Update")
	}

	if slices.Equal(policies, resource.Strings(u.Object, "spec", "managementPolicies")) {
		return nil
	}

	list := make([]any, len(policies))
	for i, p := range policies {
		list[i] = p
	}

	patch := newPrototype(r.kind)
	patch.SetNamespace(u.GetNamespace())
	patch.SetName(u.GetName())
	patch.Object["spec"] = map[string]any{"managementPolicies": list}

	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.ForceOwnership, client.FieldOwner("floor"))
	if err != nil {
		return errors.Join(fmt.Errorf("cannot patch %s", u.GetName()), err)
	}

	return nil
}
