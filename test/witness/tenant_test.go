// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const tenantGroup = "tenants.example.org"

// people are who changes things.
type people struct {
	admin      client.WithWatch
	hans, anna client.Client
	server     *sql.DB
}

// newPeople applies the definitions, once, and returns who plays.
func newPeople(t *testing.T) people {
	t.Helper()

	p := people{
		admin: world.Connect(t, running.Config()), server: connect(t, "postgres"),
		hans: world.ConnectAs(t, running, "hans"), anna: world.ConnectAs(t, running, "anna"),
	}

	defined.Do(func() { errDefined = p.define(t.Context()) })

	if errDefined != nil {
		t.Fatal(errDefined)
	}

	return p
}

var (
	defined    sync.Once
	errDefined error
)

// define applies what tenants are made of, and waits until it is in force.
func (p people) define(ctx context.Context) error {
	text, err := os.ReadFile("testdata/tenants.yaml")
	if err != nil {
		return err
	}

	objects, err := stack.ParseManifests(text)
	if err != nil {
		return err
	}

	for _, u := range objects {
		if err := p.apply(ctx, u); err != nil {
			return err
		}
	}

	return scenario.Eventually(ctx, "policies in force", func(ctx context.Context) error {
		for _, u := range objects {
			live := u.DeepCopy()
			if err := p.admin.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
				return err
			}

			if live.GetKind() == "AllowancePolicy" && !resource.Ready(live) {
				return fmt.Errorf("%s %q is not ready: %w", u.GetKind(), u.GetName(), world.ErrOther)
			}
		}

		return nil
	})
}

// apply applies an object, as soon as its kind is served.
func (p people) apply(ctx context.Context, u *unstructured.Unstructured) error {
	return scenario.Eventually(ctx, "applying "+u.GetName(), func(ctx context.Context) error {
		return p.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership)
	})
}

// database returns a setting of a database, as the server has it: "" where there is
// no such database.
func (p people) database(ctx context.Context, name, column string) (string, error) {
	query := map[string]string{
		"connections": "datconnlimit::text",
		"owner":       "pg_get_userbyid(datdba)::text",
		"encoding":    "pg_encoding_to_char(encoding)::text",
		"comment":     "coalesce(shobj_description(oid, 'pg_database'), '')",
	}[column]

	var got string

	err := p.server.QueryRowContext(ctx, "SELECT "+query+" FROM pg_database WHERE datname = $1", name).Scan(&got)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return got, err
}

// execute has the superuser execute a statement.
func (p people) execute(ctx context.Context, statement string) error {
	_, err := p.server.ExecContext(ctx, statement)

	return err
}

// A tenant is a composite resource of a test, by its name, in a namespace of its
// own. Its managed resources and what they stand for have its name.
type tenant struct {
	people

	name, namespace string
}

// newTenant makes a namespace for one.
func newTenant(t *testing.T, name string) tenant {
	t.Helper()

	x := tenant{people: newPeople(t), name: name, namespace: name}

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := x.admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(x.dump(context.WithoutCancel(t.Context())))
		}
	})

	return x
}

func tenantKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: tenantGroup, Version: "v1", Kind: "Tenant"}
}

func (x tenant) object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(x.namespace)
	u.SetName(x.name)

	return u
}

func (x tenant) get(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u := x.object(gvk)

	return u, x.admin.Get(ctx, client.ObjectKeyFromObject(u), u)
}

// made makes the tenant, and waits until it has settled.
func (x tenant) made(t *testing.T, spec map[string]any) {
	t.Helper()

	u := x.object(tenantKind())
	u.Object["spec"] = spec

	world.Must(t, x.hans.Create(t.Context(), u))
	world.Must(t, scenario.Eventually(t.Context(), "a tenant", all(x.says("settled"), x.closed(kindDatabase))))
}

// change has somebody change the spec of the tenant, with a ticket unless that is
// empty.
func (x tenant) change(ctx context.Context, as client.Client, ticket string, spec map[string]any) error {
	patch := map[string]any{"spec": spec}
	if ticket != "" {
		patch["metadata"] = map[string]any{"annotations": map[string]any{"ticket": ticket}}
	}

	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}

	return as.Patch(ctx, x.object(tenantKind()), client.RawPatch(types.MergePatchType, raw))
}

// destroys has hans say that an object may be destroyed.
func (x tenant) destroys(ctx context.Context, gvk schema.GroupVersionKind) error {
	return x.hans.Patch(ctx, x.object(gvk), world.Merge(`{"metadata": {"annotations": {"destroys": "yes"}}}`))
}

// A check reports whether all is as it is to be.
type check = func(ctx context.Context) error

func all(checks ...check) check {
	return func(ctx context.Context) error {
		for _, c := range checks {
			if err := c(ctx); err != nil {
				return err
			}
		}

		return nil
	}
}

// says checks that the Kausality condition of the tenant has a text in it.
func (x tenant) says(text string) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, tenantKind())
		if err != nil {
			return err
		}

		c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("it says %q, want %q: %w", c.Message, text, world.ErrOther)
		}

		return nil
	}
}

// unsettled checks that the tenant has not settled as it is. What it said of an earlier generation Crossplane may write
// back for a moment.
func (x tenant) unsettled(ctx context.Context) error {
	u, err := x.get(ctx, tenantKind())
	if err != nil {
		return err
	}

	if p, _ := resource.ProgressOf(u); p.Phase == v1alpha1.PhaseSettled && p.Generation >= u.GetGeneration() {
		return fmt.Errorf("it has settled as generation %d: %w", p.Generation, world.ErrOther)
	}

	return nil
}

// closed checks that the gates of managed resources are closed, with nothing left
// over.
func (x tenant) closed(kinds ...string) check {
	return func(ctx context.Context) error {
		for _, kind := range kinds {
			u, err := x.get(ctx, managedKind(kind))
			if err != nil {
				return err
			}

			rec, err := allowance.ParseGate(u)
			if err != nil {
				return err
			}

			list, err := allowance.Parse(u)
			if err != nil {
				return err
			}

			if rec == nil || rec.State != v1alpha1.GateClosed || len(list) > 0 || len(management.Acting(policies(u))) > 0 {
				return fmt.Errorf("the gate of %s is %+v, with allowances %+v: %w", kind, rec, list, world.ErrOther)
			}
		}

		return nil
	}
}

// open checks that the gate of a managed resource is open for some actions.
func (x tenant) open(kind string, actions ...string) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, managedKind(kind))
		if err != nil {
			return err
		}

		if got := management.Acting(policies(u)); !slices.Equal(got, actions) {
			return fmt.Errorf("the gate of %s is open for %q, want %q: %w", kind, got, actions, world.ErrOther)
		}

		return nil
	}
}

// outside checks a setting of the database, as the server has it.
func (x tenant) outside(column, want string) check {
	return func(ctx context.Context) error {
		got, err := x.database(ctx, x.name, column)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, want %q: %w", column, got, want, world.ErrOther)
		}

		return err
	}
}

// executes checks what the provider has had the server do for the tenant, since
// there were some statements: those that failed begin with "failed: ".
func (x tenant) executes(since int, want ...string) check {
	return func(context.Context) error {
		got, err := x.texts(since)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("executed\n%s\nwant\n%s: %w", strings.Join(got, "\n"), strings.Join(want, "\n"), world.ErrOther)
		}

		return err
	}
}

// texts returns the provider's statements for the tenant, without those that are
// repeated one after the other because they fail.
func (x tenant) texts(since int) ([]string, error) {
	executed, err := ofProvider(x.name)
	if err != nil {
		return nil, err
	}

	var out []string

	for _, s := range executed[min(since, len(executed)):] {
		text := s.text
		if s.failed != "" {
			text = "failed: " + text
		}

		if n := len(out); s.failed == "" || n == 0 || out[n-1] != text {
			out = append(out, text)
		}
	}

	return out, nil
}

// mark is how many statements there are.
func (x tenant) mark(t *testing.T) int {
	t.Helper()

	executed, err := ofProvider(x.name)
	world.Must(t, err)

	return len(executed)
}

// tickets checks that the trace of a managed resource names a ticket for a field.
func (x tenant) ticket(kind, field, want string) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, managedKind(kind))
		if err != nil {
			return err
		}

		trace, err := allowance.ParseTrace(u)
		if err != nil {
			return err
		}

		for _, e := range trace {
			if e.Field != field {
				continue
			}

			for _, hop := range e.Trace {
				if got := hop.Attestations["metadata.annotations[ticket]"]; got == want {
					return nil
				}
			}

			return fmt.Errorf("%s of %s is traced to %+v, want ticket %q: %w", field, kind, e, want, world.ErrOther)
		}

		return fmt.Errorf("no trace of %s in %s: %w", field, kind, world.ErrOther)
	}
}

// gone checks that a managed resource is.
func (x tenant) gone(gvk schema.GroupVersionKind) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, gvk)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(err, fmt.Errorf("%s %q is there: %w", u.GetKind(), u.GetName(), world.ErrOther))
	}
}

// dump shows the tenant, its managed resources, and what was executed.
func (x tenant) dump(ctx context.Context) string {
	var out strings.Builder

	for _, gvk := range []schema.GroupVersionKind{
		tenantKind(), managedKind(kindDatabase), managedKind(kindRole), managedKind(kindGrant), managedKind(kindView),
	} {
		u, err := x.get(ctx, gvk)
		if err != nil {
			fmt.Fprintf(&out, "---\n# %s: %v\n", gvk.Kind, err)

			continue
		}

		u.SetManagedFields(nil)

		raw, err := sigsyaml.Marshal(u.Object)
		fmt.Fprintf(&out, "---\n%s", raw)

		if err != nil {
			fmt.Fprintln(&out, err)
		}
	}

	executed, err := ofProvider(x.name)
	for _, s := range executed {
		fmt.Fprintln(&out, s)
	}

	if err != nil {
		fmt.Fprintln(&out, err)
	}

	return out.String()
}
