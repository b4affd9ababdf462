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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// ketch is a kind of XR as before Crossplane 2, without a Claim and in no namespace, and yawl one as
// since. Both are composed by one function, and no policy is about what that composes.
const ketch = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: ketches.shop.example.org}
spec:
  group: shop.example.org
  names: {kind: Ketch, plural: ketches}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: yawls.shop.example.org}
spec:
  group: shop.example.org
  scope: Namespaced
  names: {kind: Yawl, plural: yawls}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-rigging, annotations: {crossplane.io/paused: "true"}}
spec: {package: stack.invalid/rigging:local, packagePullPolicy: Never}
---
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: ketch-size}
spec:
  match: {apiGroup: shop.example.org, kind: Ketch, fields: [spec.size]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data.size]}]
---
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: yawl-size}
spec:
  match: {apiGroup: shop.example.org, kind: Yawl, fields: [spec.size]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data.size]}]
`

// rigged composes a ConfigMap for a kind, that says by which program it was rendered.
func rigged(kind string) string {
	return strings.NewReplacer("function-templates", "function-rigging", "kind: App", "kind: "+kind).Replace(
		appPipeline("rigged-"+strings.ToLower(kind), `
    functionRef: {name: function-templates}
    input:
      apiVersion: templates.example.org/v1
      kind: Template
      template: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "{{ .xr.metadata.name }}-sails", namespace: default, annotations: {templates.example.org/name: sails}}
        data: {size: "{{ .xr.spec.size }}", by: "{{ program }}"}`, stepKausality))
}

// rigging is a revision of the function that both are composed by.
func rigging(number int, state string) string {
	return fmt.Sprintf(`
apiVersion: pkg.crossplane.io/v1
kind: FunctionRevision
metadata:
  name: function-rigging-%[1]d
  labels: {pkg.crossplane.io/package: function-rigging}
  annotations: {crossplane.io/paused: "true"}
spec: {desiredState: %[2]s, image: "stack.invalid/rigging:local", packagePullPolicy: Never, revision: %[1]d}
`, number, state)
}

// activate makes a revision of the function the active one, as the package manager does: it is served
// where another function is.
func (c cluster) activate(ctx context.Context, number int, function string) error {
	kind := schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}

	served, err := c.get(ctx, kind, function+"-1")
	if err != nil {
		return err
	}

	if err := c.apply(ctx, admin, rigging(number, "Active")); err != nil {
		return err
	}

	revision, err := c.get(ctx, kind, fmt.Sprint("function-rigging-", number))
	if err != nil {
		return err
	}

	before := revision.DeepCopy()
	revision.Object["status"] = served.Object["status"]

	if err := c.Status().Patch(ctx, revision, client.MergeFrom(before)); err != nil || number == 1 {
		return err
	}

	return c.apply(ctx, admin, rigging(number-1, "Inactive"))
}

// updated checks which updates of functions may be why the first change is asked for.
func (p pendings) updated(revisions ...string) check {
	return func(ctx context.Context) error {
		pch, err := p.get(ctx)
		if err == nil && (len(pch.Status.Changes) == 0 || !slices.Equal(pch.Status.Changes[0].Cause.Functions, revisions)) {
			err = fmt.Errorf("the changes are %+v, and not perhaps because of %q: %w", pch.Status.Changes, revisions, world.ErrOther)
		}

		return err
	}
}

// sails checks by which program a ConfigMap was rendered, and how large its sails are.
func (c cluster) sails(program, size string) check {
	return func(ctx context.Context) error {
		u, err := c.get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, c.name+"-sails")
		if err != nil {
			return err
		}

		if by, is := resource.String(u.Object, "data", "by"), resource.String(u.Object, "data", "size"); by != program || is != size {
			return fmt.Errorf("it is by %q, of size %q, want %q and %q: %w", by, is, program, size, world.ErrOther)
		}

		return nil
	}
}

// TestWhatAnotherReleaseOfAFunctionAsksForIsListed of XRs as before Crossplane 2 and since, at once: of neither
// has anybody edited anything, nor is there another revision of its Composition.
func TestWhatAnotherReleaseOfAFunctionAsksForIsListed(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const next = functionTemplates + "-next"

	v1, v2 := newCluster(t, "Ketch", "rigged-v1"), newCluster(t, "Yawl", "rigged-v2")
	v1.namespace = ""

	lists := map[*cluster]pendings{
		&v1: pendingsOf(t, "shop.example.org/v1", "Ketch", "", v1.name), &v2: pendingsOf(t, "shop.example.org/v1", "Yawl", namespace, v2.name),
	}
	both := func(check func(c cluster, p pendings) check) check {
		return func(ctx context.Context) error {
			errs := make([]error, 0, len(lists))
			for c, p := range lists {
				errs = append(errs, check(*c, p)(ctx))
			}

			return errors.Join(errs...)
		}
	}

	asks := func(c cluster) held {
		h := held{kind: "ConfigMap", part: "sails", field: "data.by", to: next, parent: c.kind.Kind, cause: v1alpha1.CausePipeline}
		if c.namespace == "" {
			h.to = "(not shown: in another namespace)" // Who reads what is listed there may not read that.
		}

		return h
	}

	const user = "rigging-berta"

	right := [3]string{v1alpha1.VerbApprove, "", "configmaps"}
	approverIn(t, stack.KausalityNamespace, user, right) // Where a PendingChange is of what is in no namespace.
	berta := approverNamed(t, user, right)

	v2.play(t, []scenario.Step{
		{Title: "Two boats", Run: func(ctx context.Context) error {
			if err := errors.Join(v2.apply(ctx, admin, ketch), v2.activate(ctx, 1, functionTemplates), v2.apply(ctx, admin, rigged("Ketch")+"---\n"+rigged("Yawl"))); err != nil {
				return err
			}

			yawl := sized("Yawl", v2.name, "small")
			if err := errors.Join(v2.apply(ctx, hans, yawl), v2.apply(ctx, hans, strings.ReplaceAll(sized("Ketch", v1.name, "small"), "namespace: default", ""))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "two boats", both(func(c cluster, _ pendings) check { return all(c.sails(functionTemplates, "small"), c.settled) }))
		}},
		{Title: "Another release of the function asks for something else, and that is listed", Run: func(ctx context.Context) error {
			if err := v2.activate(ctx, 2, next); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "two lists", both(func(c cluster, p pendings) check {
				return all(c.says("1 change held"), c.sails(functionTemplates, "small"),
					p.lists(nil, asks(c)), p.updated("function-rigging-2"))
			}))
		}},
		{Title: "Who edits them asks for that alone", Run: func(ctx context.Context) error {
			hans, err := v2.as(hans)
			if err != nil {
				return err
			}

			for c := range lists {
				u, err := c.xr(ctx)
				if err != nil {
					return err
				}

				if err := hans.Patch(ctx, u, world.Merge(`{"spec": {"size": "large"}}`)); err != nil {
					return err
				}
			}

			return scenario.Eventually(ctx, "two lists", both(func(c cluster, p pendings) check {
				return all(c.sails(functionTemplates, "large"), c.says(": settled", "1 change held"),
					p.lists(nil, asks(c)), p.updated("function-rigging-2"))
			}))
		}},
		{Title: "It is approved", Run: func(ctx context.Context) error {
			for c, p := range lists {
				if err := berta.decide(ctx, p, c.name, v1alpha1.DecisionApprove, func(v1alpha1.HeldChange) bool { return true }); err != nil {
					return err
				}
			}

			return scenario.Eventually(ctx, "two boats", both(func(c cluster, p pendings) check { return all(c.sails(next, "large"), c.settled, p.lists(nil)) }))
		}},
	})
}
