// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// intrude has anna change something that she may not.
func (p *play) intrude(ctx context.Context) error {
	change := parameters{"size": int64(500 + p.rng.IntN(100))}
	if p.rng.IntN(2) == 0 {
		change = parameters{"color": "black", "tags": map[string]any{"by": "anna"}}
	}

	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"forProvider": change}})
	if err != nil {
		return err
	}

	u := p.reference()
	err = p.anna.Patch(ctx, u, world.Merge(string(raw)))
	p.notef("anna asks for %v: %v", change, err)

	if p.enforced == stored {
		p.overwritten = true

		return nil
	}

	if err != nil {
		return nil //nolint:nilerr // She may not.
	}

	if have := resource.Map(u.Object, "spec", "forProvider"); !same(p.want, have) {
		return fmt.Errorf("anna got %v: %w", have, world.ErrOther)
	}

	return nil
}

// pryOpen has somebody open the gate by hand.
func (p *play) pryOpen(ctx context.Context) error {
	who := []client.Client{p.hans, p.anna, p.crossplane}[p.rng.IntN(3)]
	text := []string{`["*"]`, `["Observe", "LateInitialize", "Update"]`, `null`, `[]`}[p.rng.IntN(4)]

	u := p.reference()
	err := who.Patch(ctx, u, world.Merge(`{"spec": {"managementPolicies": `+text+`}}`))
	p.notef("managementPolicies %s: %v", text, err)

	if err != nil {
		return nil //nolint:nilerr // As it should be.
	}

	// Nothing is refused that changes nothing.
	rec, err := allowance.ParseGate(u)
	if err != nil {
		return err
	}

	is := resource.Strings(u.Object, "spec", "managementPolicies")
	if rec != nil && (len(is) == 0 || !management.Same(management.Acting(is), management.Acting(rec.Actions))) {
		return fmt.Errorf("somebody moved the gate to %v, which is %v: %w", is, *rec, world.ErrOther)
	}

	return nil
}

// forge has somebody write what only Kausality writes.
func (p *play) forge(ctx context.Context) error {
	who := []client.Client{p.hans, p.anna, p.crossplane}[p.rng.IntN(3)]
	forged := fixture.AllSourced([]v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionUpdate, management.ActionDelete},
		Generation: 1_000_000, Initiator: forger, Policy: "server-change",
	}})

	annotations := map[string]any{v1alpha1.AnnotationAllowances: allowance.FormatList(forged)}
	if p.rng.IntN(2) == 0 {
		rec, err := allowance.FormatGate(v1alpha1.GateRecord{State: v1alpha1.GateOpen, Actions: forged[0].Mutations, Allowances: forged})
		if err != nil {
			return err
		}

		annotations = map[string]any{v1alpha1.AnnotationGate: rec}
	}

	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}

	u := p.reference()
	err = who.Patch(ctx, u, world.Merge(string(raw)))
	p.notef("a forgery: %v", err)

	if err != nil {
		return nil //nolint:nilerr // As it should be.
	}

	list, _ := allowance.Parse(u)
	for _, a := range list {
		if a.Initiator == forger {
			return fmt.Errorf("a forgery was taken: %w", world.ErrOther)
		}
	}

	return nil
}

const forger = "forger@example.com"

// annotate has anna write what is nobody's business, as often as she can.
func (p *play) annotate(ctx context.Context) error {
	p.notef("anna annotates")

	for i := range 2 + p.rng.IntN(4) {
		text := fmt.Sprintf(`{"metadata": {"annotations": {"anna": "%d"}, "labels": {"anna": "%d"}}}`, i, i)
		_ = p.anna.Patch(ctx, p.reference(), world.Merge(text)) // Perhaps she cannot, now.
	}

	return nil
}

// tryToDelete has anna delete it.
func (p *play) tryToDelete(ctx context.Context) error {
	err := p.anna.Delete(ctx, p.reference())
	p.notef("anna deletes it: %v", err)

	if err == nil {
		return fmt.Errorf("anna deleted it: %w", world.ErrOther)
	}

	return nil
}

// pause has hans change something while somebody has paused the provider.
func (p *play) pause(ctx context.Context) error {
	set := func(value string) error {
		p.notef("paused: %s", value)

		return eventually(ctx, "pausing", func(ctx context.Context) error {
			return p.hans.Patch(ctx, p.reference(), world.Merge(`{"metadata": {"annotations": {"crossplane.io/paused": `+value+`}}}`))
		})
	}

	if err := set(`"true"`); err != nil {
		return err
	}

	if err := p.editSome(ctx); err != nil {
		return err
	}

	if err := p.rest(ctx); err != nil {
		return err
	}

	return set(`null`)
}

// end has hans delete it, until it is gone; the external object goes with it.
func (p *play) end(ctx context.Context) error {
	p.deletes = true
	p.notef("hans deletes it")

	err := eventually(ctx, "the end", func(ctx context.Context) error {
		err := p.hans.Delete(ctx, p.reference())
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})
	if err != nil {
		return err
	}

	if state, ok := outside.State(p.name); ok {
		return fmt.Errorf("it left %v behind: %w", state, world.ErrOther)
	}

	return nil
}

// allowancesOf are those of the managed resource when a call was made.
func allowancesOf(c external.Call) []v1alpha1.Allowance {
	u := &unstructured.Unstructured{}
	u.SetAnnotations(c.Managed.Annotations)

	list, _ := allowance.Parse(u) // What does not parse allows nothing.

	return list
}
