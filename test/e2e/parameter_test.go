// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// parameterized is a lab with a policy whose parameters are of a kind that comes and goes.
type parameterized struct {
	lab

	typed  client.Client
	policy string
}

// TestParametersSayWhatMayBeChanged has the parameter of a policy be without rights, missing,
// there, changed, and of a kind that vanishes, and looks at what else goes on.
func TestParametersSayWhatMayBeChanged(t *testing.T) {
	t.Parallel()

	p := parameterized{lab: newLab(t, "lab-limited", "none"), typed: typedAs(t, ""), policy: "lab-with-limits"}
	ctx := t.Context()

	if err := p.applyFile(ctx, "parameters.yaml"); err != nil {
		t.Fatal(err)
	}

	// It is in force once its parameters can be read, so nothing waits for it.
	text, err := os.ReadFile(filepath.Join("testdata", "limited.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if err := p.Create(ctx, &fixture.Documents[unstructured.Unstructured](t, string(text))[0]); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { p.gone(t) })

	hansen, err := p.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	warned := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")

	// 1. Nobody may read the kind.
	p.eventually(t, v1alpha1.ConditionParametersReadable, metav1.ConditionFalse, v1alpha1.ReasonRightsMissing, right.Remedy)
	p.eventually(t, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonParametersUnreadable, "cannot be read")
	p.may(t, warned, false, "its parameters cannot be read")

	// 2. They may, and there is none.
	role := right.RoleOfParameters(schema.GroupResource{Group: "limits." + labGroup, Resource: "limits"})
	if err := p.Create(ctx, &role); err != nil {
		t.Fatal(err)
	}

	p.eventually(t, v1alpha1.ConditionParametersReadable, metav1.ConditionTrue, v1alpha1.ReasonReadable, "")
	p.eventually(t, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonInForce, "")
	p.may(t, warned, false, `there is no Limit "lab-limited/default", named by its paramRef`)

	// 3. It is there, changes, and is deleted.
	limit := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"costs": []any{"low"}}}}
	limit.SetGroupVersionKind(schema.GroupVersionKind{Group: "limits." + labGroup, Version: "v1", Kind: "Limit"})
	limit.SetNamespace("lab-limited")
	limit.SetName("default")

	if err := p.Create(ctx, limit.DeepCopy()); err != nil {
		t.Fatal(err)
	}

	p.may(t, warned, true, "")

	if err := p.Patch(ctx, limit.DeepCopy(), world.Merge(`{"spec": {"costs": ["high"]}}`)); err != nil {
		t.Fatal(err)
	}

	p.may(t, warned, false, `the cost is one of high (with Limit "lab-limited/default")`)

	if err := p.Patch(ctx, limit.DeepCopy(), world.Merge(`{"spec": {"costs": ["high", "low"]}}`)); err != nil {
		t.Fatal(err)
	}

	p.may(t, warned, true, "")

	// 4. Its kind vanishes, though that is refused: nobody may by it, and all else goes on.
	if err := vanish(ctx, p.cluster, "limits.limits."+labGroup, p.policy); err != nil {
		t.Fatal(err)
	}

	p.eventually(t, v1alpha1.ConditionParametersReadable, metav1.ConditionFalse, v1alpha1.ReasonKindUnknown, "serves no kind Limit")
	p.may(t, warned, false, "its parameters cannot be read")

	plan := p.plan.DeepCopy()
	if err := hansen.Patch(ctx, plan, world.Merge(`{"spec": {"size": 7}}`), client.DryRunAll); err != nil {
		t.Fatal(err)
	}

	if resource.Annotation(plan, v1alpha1.AnnotationAllowances) == "" {
		t.Error("another policy lets nobody while the parameters of one cannot be read")
	}
}

// vanish deletes a CRD that holds the parameters of a policy, which is refused, and takes
// the guard away that refuses it.
func vanish(ctx context.Context, c cluster, name, policy string) error {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(name)

	if err := scenario.Eventually(ctx, "a refusal to delete CRD "+name, func(ctx context.Context) error {
		err := c.Delete(ctx, crd.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !mentions(err.Error(), `AllowancePolicy "`+policy+`" has its parameters in objects of kind `) {
			return fmt.Errorf("%w: %w", err, world.ErrOther)
		}

		return nil
	}); err != nil {
		return err
	}

	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		return err
	}

	// Nor may its version be taken away, but what is none of the policy's concern may be changed.
	unserved := crd.DeepCopy()
	if err := c.Patch(ctx, unserved, client.RawPatch(types.JSONPatchType, []byte(
		`[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)), client.DryRunAll); !apierrors.IsForbidden(err) {
		return fmt.Errorf("a version is served no more: %w: %w", err, world.ErrOther)
	}

	if err := c.Patch(ctx, crd.DeepCopy(), world.Merge(`{"spec": {"names": {"shortNames": ["short"]}}}`), client.DryRunAll); err != nil {
		return fmt.Errorf("another change of it: %w", err)
	}

	return scenario.Eventually(ctx, "CRD "+name+" deleted", func(ctx context.Context) error {
		guard := &unstructured.Unstructured{}
		guard.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding",
		})
		guard.SetName(v1alpha1.NameParameterGuard)

		return errors.Join(client.IgnoreNotFound(c.Delete(ctx, guard)), client.IgnoreNotFound(c.Delete(ctx, crd.DeepCopy())))
	})
}

// TestABindingHasParametersOfItsOwn where its policy lets it, and those of the policy hold,
// too.
func TestABindingHasParametersOfItsOwn(t *testing.T) {
	world.Long(t)
	t.Parallel()

	p := parameterized{lab: newLab(t, "lab-own", "none"), typed: typedAs(t, ""), policy: "lab-with-own"}
	ctx := t.Context()

	if err := errors.Join(p.readable(ctx, "configmaps"), p.applyFile(ctx, "bound.yaml")); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { p.gone(t) })

	warned := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")
	p.may(t, warned, false, `there is no ConfigMap "lab-own/own"`)

	all := lab{cluster: p.cluster}
	all.namespace = namespace

	for _, step := range []struct {
		of        lab
		name, may string
		allowed   bool
		says      string
	}{
		{p.lab, "own", "high", false, `(with ConfigMap "lab-own/own")`},
		{p.lab, "own", "low", true, ""},
		{all, "lab-all", "high", false, `(with ConfigMap "default/lab-all")`},
		{all, "lab-all", "low,high", true, ""},
	} {
		if err := step.of.costs(ctx, step.name, step.may); err != nil {
			t.Fatal(err)
		}

		p.may(t, warned, step.allowed, step.says)
	}

	// What is no longer the binding's to choose lets nobody.
	fixed := &v1alpha1.AllowancePolicy{}
	fixed.SetName(p.policy)

	if err := p.typed.Patch(ctx, fixed, world.Merge(`{"spec": {"paramRef": {"overridable": false}}}`)); err != nil {
		t.Fatal(err)
	}

	p.may(t, warned, false, "that of the policy is not overridable")

	b := &v1alpha1.AllowanceBinding{}
	if err := scenario.Eventually(ctx, "the binding says so", func(ctx context.Context) error {
		if err := p.typed.Get(ctx, client.ObjectKey{Namespace: "lab-own", Name: "own"}, b); err != nil {
			return err
		}

		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonNotOverridable {
			return fmt.Errorf("%+v: %w", c, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// readable lets us and Crossplane read a built-in resource.
func (l lab) readable(ctx context.Context, plural string) error {
	role := right.RoleOfParameters(schema.GroupResource{Resource: plural})

	return client.IgnoreAlreadyExists(l.Create(ctx, &role))
}

// costs has a ConfigMap list costs.
func (l lab) costs(ctx context.Context, name, list string) error {
	m := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"costs": list}}}
	m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	m.SetNamespace(l.namespace)
	m.SetName(name)
	m.SetLabels(map[string]string{"for": "plans"})

	return l.Apply(ctx, client.ApplyConfigurationFromUnstructured(m), client.FieldOwner("costs"), client.ForceOwnership)
}

// gone deletes the policy.
func (p parameterized) gone(t *testing.T) {
	t.Helper()

	gone := &v1alpha1.AllowancePolicy{}
	gone.SetName(p.policy)

	if err := p.typed.Delete(context.WithoutCancel(t.Context()), gone); err != nil {
		t.Error(err)
	}
}

// eventually waits until the policy has a condition.
func (p parameterized) eventually(t *testing.T, typ string, want metav1.ConditionStatus, reason, says string) {
	t.Helper()

	if err := p.has(t.Context(), typ, want, reason, says); err != nil {
		t.Fatal(err)
	}
}

// has waits until the policy has a condition.
func (p parameterized) has(ctx context.Context, typ string, want metav1.ConditionStatus, reason, says string) error {
	got := &v1alpha1.AllowancePolicy{}

	return scenario.Eventually(ctx, typ+" of policy "+p.policy, func(ctx context.Context) error {
		if err := p.typed.Get(ctx, client.ObjectKey{Name: p.policy}, got); err != nil {
			return err
		}

		c := meta.FindStatusCondition(got.Status.Conditions, typ)
		if c == nil || c.Status != want || c.Reason != reason || !mentions(c.Message, says) {
			return fmt.Errorf("%+v: %w", c, world.ErrOther)
		}

		return nil
	})
}

// may waits until hans may change the cost of the plan by the policy, or may not, and is
// told why.
func (p parameterized) may(t *testing.T, as *world.Warned, may bool, says string) {
	t.Helper()

	if err := scenario.Eventually(t.Context(), fmt.Sprintf("policy %s allowing it: %t", p.policy, may), func(ctx context.Context) error {
		as.Take()

		plan := p.plan.DeepCopy()
		patch := world.Merge(`{"spec": {"settings": {"` + p.policy + `.lab.example.org/cost": "low"}}}`)

		if err := as.Patch(ctx, plan, patch, client.DryRunAll); err != nil {
			return err
		}

		text := as.Take()
		if logged, err := auditOf(plan.GetNamespace(), plan.GetName()); err == nil { // It has the whole reason.
			text += "\n" + logged["missing"]
		}

		if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); (got != "") != may || !mentions(text, says) {
			return fmt.Errorf("allowances %q, and said %q: %w", got, text, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
