// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Who applies things.
const (
	admin = ""
	hans  = "hans"
)

// namespace is where most composite resources of these tests are, and all
// external objects.
const namespace = "default"

// annotationPart names a composed resource in its Composition.
const annotationPart = "crossplane.io/composition-resource-name"

// cluster is the stack, as tests about one composite resource see it.
type cluster struct {
	client.Client

	// kind, name and namespace of the composite resource.
	kind      schema.GroupVersionKind
	name      string
	namespace string
}

func newCluster(t *testing.T, kind, name string) cluster {
	t.Helper()

	return cluster{
		Client: world.Connect(t, running.Config()), name: name, namespace: namespace,
		kind: schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: kind},
	}
}

// play plays steps that build on each other. When one fails it shows the
// composite resource and what it composes.
func (c cluster) play(t *testing.T, steps []scenario.Step) {
	t.Helper()

	for _, step := range steps {
		if !t.Run(step.Title, func(t *testing.T) {
			if err := step.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, c.dump(t.Context()))
			}
		}) {
			return
		}
	}
}

// dump shows the composite resource and its managed resources.
func (c cluster) dump(ctx context.Context) string {
	var out bytes.Buffer

	xr, err := c.xr(ctx)
	live, err2 := c.parts(ctx, objectKind())

	objects := append(make([]*unstructured.Unstructured, 0, 1+len(live)), xr)
	for _, u := range live {
		objects = append(objects, u)
	}

	for _, u := range objects {
		u.SetManagedFields(nil)

		raw, err := sigsyaml.Marshal(u.Object)
		fmt.Fprintf(&out, "---\n%s", raw)

		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}

	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(&out, err)
	}

	return out.String()
}

// of is the same cluster, seen by who cares for another composite resource.
func (c cluster) of(kind, name string) cluster {
	c.kind.Kind, c.name = kind, name

	return c
}

func (c cluster) as(user string) (client.Client, error) {
	if user == admin {
		return c, nil
	}

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(running.Dir(), "users", user+".kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("cannot become %s: %w", user, err)
	}

	config.WarningHandler = rest.NoWarnings{}

	return client.New(config, client.Options{})
}

// apply applies YAML documents as a user.
func (c cluster) apply(ctx context.Context, user, text string) error {
	u, err := c.as(user)
	if err != nil {
		return err
	}

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := dec.Decode(obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read a document: %w", err)
		}

		if len(obj.Object) == 0 {
			continue
		}

		// A kind is served a moment after its definition is there.
		if err := scenario.Eventually(ctx, "applying "+obj.GetKind()+" "+obj.GetName(), func(ctx context.Context) error {
			return u.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test-"+user), client.ForceOwnership)
		}); err != nil {
			return err
		}

		if obj.GetKind() != "AllowancePolicy" {
			continue
		}

		if err := scenario.Eventually(ctx, "policy "+obj.GetName()+" in force", func(ctx context.Context) error {
			p, err := c.get(ctx, obj.GroupVersionKind(), obj.GetName())
			if err == nil && !resource.Ready(p) {
				err = world.ErrOther
			}

			return err
		}); err != nil {
			return err
		}
	}
}

func (c cluster) applyFile(ctx context.Context, name string) error {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		return err
	}

	return c.apply(ctx, admin, string(text))
}

func (c cluster) get(ctx context.Context, gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	key := client.ObjectKey{Namespace: namespace, Name: name}
	if gvk.Group == v1alpha1.GroupVersion().Group {
		key.Namespace = ""
	}

	return u, c.Get(ctx, key, u)
}

func (c cluster) xr(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(c.kind)

	return u, c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, u)
}

// configMap reads an external object.
func (c cluster) configMap(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return c.get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, name)
}

func objectKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"}
}

// parts reads what the composite resource composes of one kind, by name in the
// Composition.
func (c cluster) parts(ctx context.Context, gvk schema.GroupVersionKind) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return nil, err
	}

	out := map[string]*unstructured.Unstructured{}

	for i := range list.Items {
		u := &list.Items[i]
		if parent, ok := resource.ParentOf(u); ok && parent.Kind == c.kind.Kind && parent.Name == c.name {
			out[resource.Annotation(u, annotationPart)] = u
		}
	}

	return out, nil
}

// Checks.

type check = func(context.Context) error

func all(checks ...check) check {
	return func(ctx context.Context) error {
		for _, ok := range checks {
			if err := ok(ctx); err != nil {
				return err
			}
		}

		return nil
	}
}

// shows checks that external objects have a value, and that the gates of their
// managed resources are closed.
func (c cluster) shows(key, value string, names ...string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, objectKind())
		if err != nil {
			return err
		}

		for _, name := range names {
			u, ok := live[name]
			if !ok {
				return fmt.Errorf("%q is not there: %w", name, world.ErrOther)
			}

			rec, err := allowance.ParseGate(u)
			if err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
				return fmt.Errorf("the gate of %q is %+v (%w)", name, rec, errors.Join(err, world.ErrOther))
			}

			out, err := c.configMap(ctx, c.name+"-"+name)
			if err != nil {
				return err
			}

			if got := resource.String(out.Object, "data", key); got != value {
				return fmt.Errorf("%s of %q is %q outside, want %q: %w", key, name, got, value, world.ErrOther)
			}
		}

		return nil
	}
}

// says checks what the composite resource's Kausality condition says.
func (c cluster) says(words ...string) check {
	return func(ctx context.Context) error {
		u, err := c.xr(ctx)
		if err != nil {
			return err
		}

		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

		told := world.Told(u)

		for _, w := range words {
			if !strings.Contains(told, w) {
				return fmt.Errorf("the condition says %q, and %q, not %q: %w", got.Message, told, w, world.ErrOther)
			}
		}

		return nil
	}
}

// settled checks that everything of the composite resource's generation has
// arrived, with nothing held.
func (c cluster) settled(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err != nil {
		return err
	}

	got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	if !strings.HasPrefix(got.Message, fixture.SettledMessage(resource.Generation(u))) || fixture.Holds(got.Message) {
		return fmt.Errorf("at generation %d the condition says %q: %w", resource.Generation(u), got.Message, world.ErrOther)
	}

	return nil
}

// spent checks that the composite resource carries no allowance any more.
func (c cluster) spent(ctx context.Context) error {
	u, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if list, err := allowance.Parse(u); err != nil || len(list) > 0 {
		return fmt.Errorf("%s %q carries %d allowances (%w)", c.kind.Kind, c.name, len(list), errors.Join(err, world.ErrOther))
	}

	return nil
}

// gone checks that an external object and its managed resource are gone.
func (c cluster) gone(name string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, objectKind())
		if err != nil {
			return err
		}

		if _, ok := live[name]; ok {
			return fmt.Errorf("%q is still there: %w", name, world.ErrOther)
		}

		if _, err := c.configMap(ctx, c.name+"-"+name); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the external object of %q is still there (%w)", name, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// still checks for a while that something does not change.
func still(ctx context.Context, ok check) error {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := ok(ctx); err != nil {
			return err
		}
	}

	return nil
}

// rests waits until a check holds for two seconds: a condition may say once more
// what a late pass of Crossplane has read before.
func rests(ctx context.Context, what string, ok check) error {
	return scenario.Eventually(ctx, what+", for a while", func(ctx context.Context) error { return still(ctx, ok) })
}
