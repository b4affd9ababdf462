// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// The parts of a database of the example, by kind.
const (
	claim    = "DatabaseClaim"
	xr       = "XDatabase"
	managed  = "Object"
	external = "ConfigMap"
)

const (
	namespace = "default"
	hansUser  = "hans@example.com"
	// engine that a database is made with; it does not change.
	engine = "postgres"
)

// database is a Claim with what is made for it.
type database struct {
	client.Client

	// hans may ask for changes, with a ticket.
	hans client.Client
	// name of the Claim, and of the others as far as they are known.
	name, xr, managed string
}

// part is where one part of a database is.
type part struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func (d *database) parts() map[string]part {
	example := schema.GroupVersion{Group: "example.org", Version: "v1alpha1"}

	return map[string]part{
		claim:    {example.WithResource("databaseclaims"), namespace, d.name},
		xr:       {example.WithResource("xdatabases"), "", d.xr},
		managed:  {schema.GroupVersionResource{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Resource: "objects"}, "", d.managed},
		external: {schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace, d.xr},
	}
}

// key of a part in etcd.
func (p part) key() string {
	return "/registry/" + filepath.Join(p.gvr.Group, p.gvr.Resource, p.namespace, p.name)
}

// object is a part with its identity only.
func (d *database) object(kind string) *unstructured.Unstructured {
	p := d.parts()[kind]
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(p.gvr.GroupVersion().WithKind(kind))
	u.SetNamespace(p.namespace)
	u.SetName(p.name)

	return u
}

// get reads a part.
func (d *database) get(ctx context.Context, kind string) (*unstructured.Unstructured, error) {
	u := d.object(kind)

	return u, d.Get(ctx, client.ObjectKeyFromObject(u), u)
}

// reporter prints what a scenario does.
type reporter struct{ t *testing.T }

func (n reporter) Sayf(format string, args ...any) { n.t.Logf(format, args...) }

func (n reporter) Show(text string) { n.t.Log("\n" + text) }

// install applies the example's XRD, Composition and policies.
func install(t *testing.T) {
	t.Helper()

	s, err := scenario.New(running, "../../examples", reporter{t})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.Steps()[0].Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// apply applies YAML documents as an administrator.
func apply(t *testing.T, text string) error {
	t.Helper()

	c, err := client.New(running.Config(), client.Options{})
	if err != nil {
		return err
	}

	for dec := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(u); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}

		// A kind is served a moment after its definition is there.
		if err := scenario.Eventually(t.Context(), "applying "+u.GetName(), func(ctx context.Context) error {
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("test"))
			if err == nil && u.GetKind() == "AllowancePolicy" {
				err = inForce(ctx, c, u)
			}

			return err
		}); err != nil {
			return err
		}
	}
}

// inForce checks that a policy is.
func inForce(ctx context.Context, c client.Client, policy *unstructured.Unstructured) error {
	live := policy.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(policy), live); err != nil {
		return err
	}

	if !resource.Ready(live) {
		return fmt.Errorf("policy %q is not in force: %w", policy.GetName(), world.ErrOther)
	}

	return nil
}

// newDatabase returns what is to be a database of a name.
func newDatabase(t *testing.T, name string) *database {
	t.Helper()

	return &database{Client: world.Connect(t, running.Config()), hans: as(t, "hans"), name: name}
}

// make makes a small database, and waits until it is quiet.
func (d *database) make(ctx context.Context) error {
	u := d.object(claim)
	u.SetAnnotations(map[string]string{"jira": "INFRA-0"})
	u.Object["spec"] = map[string]any{"size": "small", "engine": engine}

	if err := d.hans.Create(ctx, u); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "a small database", d.quiet); err != nil {
		return err
	}

	return age(ctx, d, d.object(managed))
}

// age makes a managed resource an old one. Of a new one, providers take half a
// minute to believe that its external object is gone.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0,
// pkg/reconciler/managed/reconciler.go, defaultGracePeriod.
func age(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	ago := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)

	return c.Patch(ctx, u, world.Merge(fmt.Sprintf(
		`{"metadata": {"annotations": {"crossplane.io/external-create-pending": %[1]q, "crossplane.io/external-create-succeeded": %[1]q}}}`, ago)))
}

// quiet checks that the database was made, and that nothing is under way.
func (d *database) quiet(ctx context.Context) error {
	u, err := d.get(ctx, claim)
	if err != nil {
		return err
	}

	d.xr = resource.String(u.Object, "spec", "resourceRef", "name")

	u, err = d.get(ctx, xr)
	if err != nil {
		return err
	}

	for _, ref := range resource.Composed(u) {
		d.managed = ref.Name
	}

	if got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality); !strings.HasPrefix(got.Message, fixture.SettledMessage(u.GetGeneration())) || fixture.Holds(got.Message) ||
		len(u.GetFinalizers()) < 2 {
		return fmt.Errorf("finalizers %v, condition %+v: %w", u.GetFinalizers(), got, world.ErrOther)
	}

	return d.closed(ctx)
}

// closed checks that the gate is closed, and that no part carries an allowance.
func (d *database) closed(ctx context.Context) error {
	for _, kind := range []string{managed, xr, claim} {
		u, err := d.get(ctx, kind)
		if err != nil {
			return err
		}

		if list, err := allowance.Parse(u); err != nil || len(list) > 0 {
			return fmt.Errorf("%s %q carries %+v (%w): %w", kind, u.GetName(), list, err, world.ErrOther)
		}

		if kind != managed {
			continue
		}

		if rec, err := allowance.ParseGate(u); err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
			return fmt.Errorf("the gate is %+v (%w): %w", rec, err, world.ErrOther)
		}
	}

	return nil
}

// dump shows all there is of a database.
func (d *database) dump(ctx context.Context) string {
	var out strings.Builder

	for _, kind := range []string{claim, xr, managed, external} {
		u, err := d.get(ctx, kind)
		u.SetManagedFields(nil)

		raw, err2 := yaml.Marshal(u.Object)
		fmt.Fprintf(&out, "---\n%s", raw)

		if err := errors.Join(err, err2); err != nil {
			fmt.Fprintln(&out, err)
		}
	}

	return out.String()
}
