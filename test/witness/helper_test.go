// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// uid is a precondition: this object, and no other of its name.
func uid(u *unstructured.Unstructured) client.Preconditions {
	id := u.GetUID()

	return client.Preconditions{UID: &id}
}

// sameOnes compares two lists, in whatever order they are.
func sameOnes(got, want []string) error {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		return fmt.Errorf("executed\n%s\nwant\n%s: %w", strings.Join(got, "\n"), strings.Join(want, "\n"), world.ErrOther)
	}

	return nil
}

// count is how often something is in a list.
func count(list []string, one string) int {
	n := 0

	for _, s := range list {
		if s == one {
			n++
		}
	}

	return n
}

// active checks that the server is at a statement that has a text in it.
func (x tenant) active(text string) check {
	return func(ctx context.Context) error {
		var n int
		if err := x.server.QueryRowContext(ctx,
			"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = 'provider' AND strpos(query, $1) > 0", text).Scan(&n); err != nil {
			return err
		}

		if n == 0 {
			return fmt.Errorf("it is not at %q: %w", text, world.ErrOther)
		}

		return nil
	}
}

// has checks a field of a managed resource.
func (x tenant) has(kind, want string, path ...string) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, managedKind(kind))
		if err != nil {
			return err
		}

		if got := resource.String(u.Object, path...); got != want {
			return fmt.Errorf("%s of %s is %q, want %q: %w", strings.Join(path, "."), kind, got, want, world.ErrOther)
		}

		return nil
	}
}

// holds checks that kausality.io/held of a managed resource names a change of one field.
func (x tenant) holds(ctx context.Context, kind, field string) error {
	u, err := x.get(ctx, managedKind(kind))
	if err != nil {
		return err
	}

	list, err := allowance.ParseHeld(u)
	if err != nil {
		return err
	}

	if len(list) != 1 || list[0].Field != field {
		return fmt.Errorf("of %s is held %+v, want %s: %w", kind, list, field, world.ErrOther)
	}

	return nil
}

// allow makes an AllowancePolicy, and waits until it is in force.
func (x tenant) allow(ctx context.Context, text string) error {
	u := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return err
	}

	u.SetAPIVersion("kausality.io/v1alpha1")
	u.SetKind("AllowancePolicy")

	if err := x.apply(ctx, u); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "a policy", func(ctx context.Context) error {
		live := u.DeepCopy()
		if err := x.admin.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}

		if !resource.Ready(live) {
			return fmt.Errorf("policy %q: %v: %w", live.GetName(), live.Object["status"], world.ErrOther)
		}

		return nil
	})
}

// window opens one, for as long as the test lasts.
func (x tenant) window(ctx context.Context, t *testing.T, name string) error {
	t.Helper()
	t.Cleanup(func() {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("kausality.io/v1alpha1")
		u.SetKind("UpgradeAllowance")
		u.SetName(name)

		_ = x.admin.Delete(context.WithoutCancel(ctx), u)
	})

	return x.openWindow(ctx, name)
}

// openWindow lets the provider put right what differs outside, of the tenant.
func (x tenant) openWindow(ctx context.Context, name string) error {
	u := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal([]byte(`
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
spec:
  serviceAccount: system:serviceaccount:crossplane-system:`+processProvider+`
  validFrom: "2026-01-01T00:00:00Z"
  validUntil: "2126-01-01T00:00:00Z"
  selector: {matchLabels: {crossplane.io/composite: `+x.name+`}}
  allow: [{relation: External, mutations: [Update]}]
`), &u.Object); err != nil {
		return err
	}

	u.SetName(name)

	return x.apply(ctx, u)
}

// synced checks that the Synced condition of a managed resource, or that of its
// last operation in the background, has a text in it.
func (x tenant) synced(kind, text string) check {
	return func(ctx context.Context) error {
		u, err := x.get(ctx, managedKind(kind))
		if err != nil {
			return err
		}

		synced, _ := resource.ConditionOf(u, resource.ConditionSynced)
		last, _ := resource.ConditionOf(u, resource.ConditionLastAsyncOperation)

		if !strings.Contains(synced.Message+last.Message, text) {
			return fmt.Errorf("%s says %q and %q, want %q: %w", kind, synced.Message, last.Message, text, world.ErrOther)
		}

		return nil
	}
}
