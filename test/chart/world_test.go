// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

var errOther = errors.New("not as expected")

// world is the control plane, as who has databases there sees it.
type world struct {
	client.Client

	hans, crossplane client.Client
	// idle has the provider do nothing.
	idle atomic.Bool
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sql.example.org", Version: "v1", Kind: name}
}

// newWorld applies what all tests need, and has the provider work until the test
// ends.
func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{Client: connect(t, running.Config(), nil)}
	config, err := running.ConfigFor("hans")
	w.hans = connect(t, config, err)

	config = running.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:crossplane-system:crossplane", Groups: []string{"system:masters"},
	}
	w.crossplane = connect(t, config, nil)

	raw, err := os.ReadFile("testdata/databases.yaml")
	if err != nil {
		t.Fatal(err)
	}

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := dec.Decode(obj); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}

		eventually(t, "applying "+obj.GetName(), func(ctx context.Context) error {
			return w.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"))
		})
	}

	for _, name := range []string{"database-size", "region-size"} {
		eventually(t, "policy "+name, func(ctx context.Context) error {
			u := prototype(v1alpha1.GroupVersion().WithKind("AllowancePolicy"))
			if err := w.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
				return err
			}

			if !resource.Ready(u) {
				return fmt.Errorf("%v: %w", u.Object["status"], errOther)
			}

			return nil
		})
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

func connect(t *testing.T, config *rest.Config, err error) client.Client {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}

	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()

	if err := scenario.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

// provide does what a provider does with all there is.
func (w *world) provide(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if w.idle.Load() {
			continue
		}

		for _, name := range []string{"Database", "Region"} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind(name))

			if err := w.List(ctx, list); err != nil {
				continue // The next time.
			}

			for i := range list.Items {
				_ = w.sync(ctx, &list.Items[i]) // Somebody wrote meanwhile: the next time.
			}
		}
	}
}

// sync does as the management policies of a resource say, and reports it.
func (w *world) sync(ctx context.Context, u *unstructured.Unstructured) error {
	status := resource.Map(u.Object, "status")
	synced, _ := resource.ConditionOf(u, resource.ConditionSynced)

	if synced.ObservedGeneration == u.GetGeneration() {
		return nil
	}

	external := status["atProvider"]
	if acting := gate.Acting(resource.Strings(u.Object, "spec", "managementPolicies")); len(acting) > 0 {
		external = resource.Map(u.Object, "spec")["forProvider"]
	}

	now := time.Now().UTC().Format(time.RFC3339)

	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()},
		"status": map[string]any{"atProvider": external, "conditions": []any{
			map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": u.GetGeneration(), "lastTransitionTime": now},
			map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": now},
		}},
	})
	if err != nil {
		return err //nolint:wrapcheck // Cannot happen.
	}

	return w.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, raw)) //nolint:wrapcheck // Nobody reads it.
}

// namespace makes a namespace with labels, until the test ends.
func (w *world) namespace(t *testing.T, name string, labels map[string]string) *corev1.Namespace {
	t.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := w.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}

	return ns
}

// database makes a managed resource, and waits until it is there with
// its gate closed. Without a namespace it is a region.
func (w *world) database(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()

	u := w.made(t, namespace, name)
	eventually(t, "a closed gate of "+name, w.closed("small", u))

	return u
}

// made makes a managed resource, as a Composition with the function does.
func (w *world) made(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()

	u := prototype(kind("Database"))
	if namespace == "" {
		u = prototype(kind("Region"))
	}

	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationManagementPolicies: "['*']"})
	u.Object["spec"] = map[string]any{
		"managementPolicies": []any{"Observe", "LateInitialize", "Create", "Update"}, "forProvider": map[string]any{"size": "small"},
	}

	eventually(t, "making "+name, func(ctx context.Context) error { return w.crossplane.Create(ctx, u.DeepCopy()) })

	return u
}

// resize has hans change the size.
func (w *world) resize(ctx context.Context, u *unstructured.Unstructured, size string) error {
	patch := `{"metadata": {"annotations": {"ticket": "SQL-` + size + `"}}, "spec": {"forProvider": {"size": "` + size + `"}}}`

	return w.hans.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))) //nolint:wrapcheck // Says it all.
}

// closed checks that the gates of resources are closed, and the external systems
// have a size.
func (w *world) closed(size string, list ...*unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, u := range list {
			rec, live, err := w.record(ctx, u)
			if err != nil {
				return err
			}

			if got := resource.String(live.Object, "status", "atProvider", "size"); rec.State != v1alpha1.GateClosed || got != size {
				return fmt.Errorf("%s: gate %s, %q outside: %w", u.GetName(), rec.State, got, errOther)
			}
		}

		return nil
	}
}

// open checks that the gates of resources are open.
func (w *world) open(list ...*unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, u := range list {
			rec, _, err := w.record(ctx, u)
			if err != nil {
				return err
			}

			if rec.State != v1alpha1.GateOpen {
				return fmt.Errorf("the gate of %s is %s: %w", u.GetName(), rec.State, errOther)
			}
		}

		return nil
	}
}

func (w *world) record(ctx context.Context, u *unstructured.Unstructured) (v1alpha1.GateRecord, *unstructured.Unstructured, error) {
	live := prototype(u.GroupVersionKind())
	if err := w.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return v1alpha1.GateRecord{}, nil, err //nolint:wrapcheck // Names the object.
	}

	rec, err := allowance.ParseGate(live)
	if err == nil && rec == nil {
		err = fmt.Errorf("%s has no gate: %w", u.GetName(), errOther)
	}

	if err != nil {
		return v1alpha1.GateRecord{}, nil, err //nolint:wrapcheck // Says it all.
	}

	return *rec, live, nil
}
