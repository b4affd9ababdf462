// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// kioskPolicy lets hans change the size of one kiosk, and says how gates are
// moved.
func kioskPolicy(name, gate string) string {
	return fmt.Sprintf(`
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: kiosk-%[1]s}
spec:
  match:
    apiGroup: shop.example.org
    kind: Kiosk
    fields: [spec.size]
    capture: ["metadata.annotations[ticket]"]
    objectSelector: {matchLabels: {kiosk: %[1]s}}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.size]}
  - {kind: ConfigMap, mutations: [data.size]}
  - {relation: External, mutations: [Update]}
  gate: %[2]s
`, name, gate)
}

// kiosk has hans ask for a size.
func (c cluster) kiosk(ctx context.Context, size string) error {
	return c.apply(ctx, hans, fmt.Sprintf(`
apiVersion: shop.example.org/v1
kind: Kiosk
metadata: {name: %[1]s, namespace: default, labels: {kiosk: %[1]s}, annotations: {ticket: SHOP-%[2]s}}
spec: {size: %[2]s, crossplane: {compositionRef: {name: kiosks-%[1]s}}}
`, c.name, size))
}

// opened is a step that makes a small kiosk under a policy.
func (c cluster) opened(gate string) scenario.Step {
	return scenario.Step{Title: "It is made", Run: func(ctx context.Context) error {
		if err := c.applyFile(ctx, "kiosks.yaml"); err != nil {
			return err
		}

		if err := c.apply(ctx, admin, kioskPolicy(c.name, gate)); err != nil {
			return err
		}

		composition := strings.ReplaceAll(storeComposition("kiosks-"+c.name, "v1", "data"), "kind: Store", "kind: Kiosk")
		if err := c.apply(ctx, admin, composition); err != nil {
			return err
		}

		if err := c.kiosk(ctx, "small"); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a small kiosk", all(c.shows("size", "small", "data"), c.settled))
	}}
}

// data is the kiosk's managed resource.
func (c cluster) data(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := c.parts(ctx, objectKind())
	if err == nil && live["data"] == nil {
		err = fmt.Errorf("there is no data: %w", world.ErrOther)
	}

	return live["data"], err
}

// gateIs checks the state of the gate.
func (c cluster) gateIs(want v1alpha1.GateState) check {
	return func(ctx context.Context) error {
		u, err := c.data(ctx)
		if err != nil {
			return err
		}

		rec, err := allowance.ParseGate(u)
		if err != nil || rec == nil || rec.State != want {
			return fmt.Errorf("the gate is %+v: %w", rec, errors.Join(err, world.ErrOther))
		}

		return nil
	}
}

// outsideIs checks the size of the external object.
func (c cluster) outsideIs(size string) check {
	return func(ctx context.Context) error {
		out, err := c.configMap(ctx, c.name+"-data")
		if err != nil {
			return err
		}

		if got, _, _ := unstructured.NestedString(out.Object, "data", "size"); got != size {
			return fmt.Errorf("the size outside is %q: %w", got, world.ErrOther)
		}

		return nil
	}
}

// heard checks that one event of a reason that says some words reports the
// managed resource, and that none is repeated.
func (c cluster) heard(reason string, words ...string) check {
	return func(ctx context.Context) error {
		u, err := c.data(ctx)
		if err != nil {
			return err
		}

		list, err := eventsOf(ctx, u, reason)
		if err != nil {
			return err
		}

		said := slices.DeleteFunc(slices.Clone(list), func(e eventsv1.Event) bool { return !mentions(e.Note, words...) })
		if len(said) != 1 {
			return fmt.Errorf("%d events %s say %q, want one: %v: %w", len(said), reason, words, notes(list), world.ErrOther)
		}

		for _, e := range list {
			if e.Series != nil {
				return fmt.Errorf("event %s was repeated %d times: %w", reason, e.Series.Count, world.ErrOther)
			}
		}

		return nil
	}
}

func notes(list []eventsv1.Event) []string {
	out := make([]string, 0, len(list))
	for i := range list {
		out = append(out, list[i].Note)
	}

	return out
}

func eventsOf(ctx context.Context, u *unstructured.Unstructured, reason string) ([]eventsv1.Event, error) {
	scheme := runtime.NewScheme()
	if err := eventsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}

	reader, err := client.New(running.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}

	list := &eventsv1.EventList{}
	if err := reader.List(ctx, list, client.InNamespace(u.GetNamespace())); err != nil {
		return nil, err
	}

	var out []eventsv1.Event

	for i := range list.Items {
		if list.Items[i].Regarding.UID == u.GetUID() && list.Items[i].Reason == reason {
			out = append(out, list.Items[i])
		}
	}

	return out, nil
}

func TestAPolicySaysWhenItsGatesClose(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Kiosk", "patient")

	const (
		asked     = "hans@example.com (policy kiosk-patient, metadata.annotations[ticket]=SHOP-large)"
		condition = `object.spec.forProvider.manifest.data.size == 'small' || has(object.metadata.annotations['done'])`
	)

	c.play(t, []scenario.Step{
		c.opened(`{closeWhen: "` + condition + `"}`),
		{Title: "A change that is there leaves the gate open until the policy says so", Run: func(ctx context.Context) error {
			if err := c.kiosk(ctx, "large"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a change outside", all(c.outsideIs("large"), c.heard("KausalityGateOpen", "allowed by "+asked))); err != nil {
				return err
			}

			return still(ctx, c.gateIs(v1alpha1.GateOpen))
		}},
		{Title: "What cannot be evaluated is told once, and leaves it open", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, kioskPolicy(c.name, `{closeWhen: "object.status.nothing == 'x'"}`)); err != nil {
				return err
			}

			told := c.heard("KausalityCloseWhen", `cannot use closeWhen of policy "kiosk-patient"`, "no such key: nothing")
			if err := scenario.Eventually(ctx, "an event", told); err != nil {
				return err
			}

			return still(ctx, all(c.gateIs(v1alpha1.GateOpen), told))
		}},
		{Title: "It closes once the policy's condition holds", Run: func(ctx context.Context) error {
			u, err := c.data(ctx)
			if err != nil {
				return err
			}

			if err := c.Patch(ctx, u, world.Merge(`{"metadata": {"annotations": {"done": "yes"}}}`)); err != nil {
				return err
			}

			if err := still(ctx, c.gateIs(v1alpha1.GateOpen)); err != nil {
				return err
			}

			// Nothing happens to the resource, but to its policy.
			if err := c.apply(ctx, admin, kioskPolicy(c.name, `{closeWhen: "`+condition+`"}`)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a closed gate",
				all(c.shows("size", "large", "data"), c.spent, c.heard("KausalityGateClosed", "applied; requested by "+asked)))
		}},
		{Title: "A condition about a request is refused", Run: func(ctx context.Context) error {
			u, err := c.as(admin)
			if err != nil {
				return err
			}

			p, err := c.get(ctx, v1alpha1.GroupVersion().WithKind("AllowancePolicy"), "kiosk-patient")
			if err != nil {
				return err
			}

			err = u.Patch(ctx, p, world.Merge(`{"spec": {"gate": {"closeWhen": "oldObject == object"}}}`))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.gate.closeWhen") {
				return fmt.Errorf("it was not refused: %w", errors.Join(err, world.ErrOther))
			}

			for _, bad := range []string{`{"settle": "a while"}`, `{"settle": "25h"}`, `{"maxOpen": "1ms"}`, `{"whenOverdue": "Shout"}`} {
				if err := u.Patch(ctx, p, world.Merge(`{"spec": {"gate": `+bad+`}}`)); !apierrors.IsInvalid(err) {
					return fmt.Errorf("%s was not refused: %w", bad, errors.Join(err, world.ErrOther))
				}
			}

			return nil
		}},
	})
}

func TestAPolicyHasGatesClosedThatAreOpenForTooLong(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Kiosk", "impatient")

	// What is gone is made again by Create alone.
	policy := func(gate string) string {
		return strings.Replace(kioskPolicy(c.name, gate), "mutations: [Update]", "mutations: [Create, Update]", 1)
	}

	c.play(t, []scenario.Step{
		c.opened(`{whenOverdue: Warn}`), // To be made may take a while.
		{Title: "A change that fails is told of once", Run: func(ctx context.Context) error {
			out, err := c.configMap(ctx, c.name+"-data")
			if err != nil {
				return err
			}

			if err := c.Patch(ctx, out, world.Merge(`{"immutable": true}`)); err != nil {
				return err
			}

			if err := errors.Join(c.apply(ctx, admin, policy(`{maxOpen: 2s, whenOverdue: Warn}`)), c.kiosk(ctx, "large")); err != nil {
				return err
			}

			told := c.heard("KausalityGateOverdue", "requested by hans@example.com (policy kiosk-impatient, metadata.annotations[ticket]=SHOP-large)")
			if err := scenario.Eventually(ctx, "an event", told); err != nil {
				return err
			}

			return still(ctx, all(c.gateIs(v1alpha1.GateOpen), told))
		}},
		{Title: "The gate closes if the policy says so, and consumes nothing", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, policy(`{maxOpen: 2s, whenOverdue: Close}`)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a closed gate", all(c.gateIs(v1alpha1.GateClosed), c.outsideIs("small")))
		}},
		{Title: "It opens again in time, and the change arrives", Run: func(ctx context.Context) error {
			out, err := c.configMap(ctx, c.name+"-data")
			if err != nil {
				return err
			}

			if err := c.Delete(ctx, out); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a change outside", all(c.shows("size", "large", "data"), c.spent))
		}},
	})
}
