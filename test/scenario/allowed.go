// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// setUp applies the XRD, the Composition and the policies.
func (s *Scenario) setUp(ctx context.Context) error {
	s.narrator.Sayf("An XRD, a Composition whose last step is function-kausality, and five AllowancePolicies:")

	_, err := s.kubectl(ctx, "", "apply",
		"-f", s.manifest("xrd.yaml"), "-f", s.manifest("composition.yaml"), "-f", s.manifest("policies.yaml"))
	if err != nil {
		return err
	}

	text, err := s.readManifest("policies.yaml")
	if err != nil {
		return err
	}

	policies, err := stack.ParseManifests([]byte(text))
	if err != nil {
		return fmt.Errorf("cannot read the policies: %w", err)
	}

	err = Eventually(ctx, "every policy in force", func(ctx context.Context) error {
		for _, d := range policies {
			p := &v1alpha1.AllowancePolicy{}
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(d), p); err != nil {
				return fmt.Errorf("cannot get a policy: %w", err)
			}

			if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("policy %q: %+v: %w", p.GetName(), p.Status.Conditions, errOther)
			}
		}

		return nil
	})
	if err != nil {
		return err
	}

	_, err = s.kubectl(ctx, "", "get", "-f", s.manifest("policies.yaml"))

	return err
}

// create makes the Claim and waits for the external object and the closed
// gate.
func (s *Scenario) create(ctx context.Context) error {
	if _, err := s.kubectl(ctx, hans, "apply", "-f", s.manifest("claim.yaml")); err != nil {
		return err
	}

	if err := s.findChildren(ctx); err != nil {
		return err
	}

	s.narrator.Sayf("Crossplane made XDatabase %s, it made Object %s, and the provider made ConfigMap %s.", s.xr, s.mr, s.external.Name)

	if err := Eventually(ctx, "the closed gate", s.settled); err != nil {
		return err
	}

	if err := s.data(ctx, "size", "small"); err != nil {
		return err
	}

	s.narrator.Sayf("Since the resource was ready once, its gate is closed: the provider may only look.")

	_, err := s.kubectl(ctx, "", "get", "object.kubernetes.crossplane.io", s.mr, "-o", `jsonpath={.spec.managementPolicies}{"\n"}`)
	if err != nil {
		return err
	}

	objects, err := s.all(ctx)
	if err != nil {
		return err
	}

	for _, u := range objects {
		if err := traced(u, v1alpha1.MutationCreate); err != nil {
			return err
		}
	}

	return nil
}

// findChildren waits for what the Claim becomes, and notes the names.
func (s *Scenario) findChildren(ctx context.Context) error {
	return Eventually(ctx, "the external object", func(ctx context.Context) error {
		claim, err := s.claim(ctx)
		if err != nil {
			return err
		}

		s.xr = resource.String(claim.Object, "spec", "resourceRef", "name")

		xr, err := s.composite(ctx)
		if err != nil {
			return err
		}

		refs := resource.List(xr.Object, "spec", "resourceRefs")
		if len(refs) == 0 {
			return fmt.Errorf("XDatabase %q refers to nothing yet: %w", s.xr, errOther)
		}

		ref, _ := refs[0].(map[string]any)
		s.mr = resource.String(ref, "name")
		s.external = client.ObjectKey{Namespace: claimNamespace, Name: s.xr}

		_, err = s.object(ctx)

		return err
	})
}

// resize changes an allowed field and checks everything that follows.
func (s *Scenario) resize(ctx context.Context) error {
	h, err := s.changeSize(ctx, "large")
	if err != nil {
		return err
	}

	if err := s.checkAllowances(h, true); err != nil {
		return err
	}

	if err := s.checkGate(h); err != nil {
		return err
	}

	s.narrator.Sayf("It is applied, the gate is closed again, the allowances have served and are gone. What stays is the trace.")

	return s.checkTraces(ctx)
}

// changeSize has hans change the Claim's size, waits until it has arrived
// outside and nothing is under way, and returns what happened meanwhile.
func (s *Scenario) changeSize(ctx context.Context, size string) (*history, error) {
	h, err := s.record(ctx)
	if err != nil {
		return nil, err
	}
	defer h.stop()

	patch := fmt.Sprintf(`{"spec":{"size":%q}}`, size)
	if _, err := s.kubectl(ctx, hans, "patch", "databaseclaim", claimName, "--type=merge", "-p", patch); err != nil {
		return nil, err
	}

	err = Eventually(ctx, "the change outside, and the gate closed behind it", func(ctx context.Context) error {
		if err := s.data(ctx, "size", size); err != nil {
			return err
		}

		return s.settled(ctx)
	})
	if err != nil {
		return nil, err
	}

	return h, s.caughtUp(ctx, h)
}

func (s *Scenario) checkTraces(ctx context.Context) error {
	objects, err := s.all(ctx)
	if err != nil {
		return err
	}

	fields := []string{fieldSize, fieldSize, fieldData}
	for i, u := range objects {
		if err := traced(u, fields[i]); err != nil {
			return err
		}
	}

	return nil
}

// hop is a part of a trace, without generations.
type hop struct{ kind, name, field string }

// checkAllowances checks that each of the three objects carried the allowance
// for the next, in the reference's form, and shows them if asked to.
func (s *Scenario) checkAllowances(h *history, show bool) error {
	path := []hop{
		{kindClaim, claimName, fieldSize},
		{kindXR, s.xr, fieldSize},
		{kindManaged, s.mr, fieldData},
	}

	for i, w := range []struct{ kind, target, mutation string }{
		{kindClaim, kindXR, fieldSize},
		{kindXR, kindManaged, fieldData},
		{kindManaged, string(v1alpha1.RelationExternal), "Update"},
	} {
		u, a, err := findAllowance(h, w.kind, w.target, w.mutation)
		if err != nil {
			return err
		}

		if err := checkAllowance(u, a, path[:i+1]); err != nil {
			return err
		}

		if show {
			s.narrator.Sayf("%s carried an allowance for %s %s:", w.kind, w.target, w.mutation)
			s.narrator.Show(allowance.FormatList([]v1alpha1.Allowance{a}))
		}
	}

	return nil
}

// findAllowance returns the first version of an object in which it carried an
// allowance of its generation for a target.
func findAllowance(h *history, kind, target, mutation string) (*unstructured.Unstructured, v1alpha1.Allowance, error) {
	var found v1alpha1.Allowance

	u, ok := h.find(kind, func(u *unstructured.Unstructured) bool {
		list, err := allowance.Parse(u)
		if err != nil {
			return false
		}

		for _, a := range list {
			if a.Generation != u.GetGeneration() {
				continue
			}

			external := allowance.External(a) && target == string(v1alpha1.RelationExternal) && slices.Equal(a.Mutations, []string{mutation})
			if external || a.Kind == target && a.Mutation == mutation {
				found = a

				return true
			}
		}

		return false
	})
	if !ok {
		return nil, found, fmt.Errorf("%s never carried an allowance for %s %s: %w", kind, target, mutation, errOther)
	}

	return u, found, nil
}

// checkAllowance compares initiator, path and attestation.
func checkAllowance(u *unstructured.Unstructured, a v1alpha1.Allowance, path []hop) error {
	if a.Initiator != hansUser || len(a.Trace) != len(path) {
		return fmt.Errorf("%s %q at generation %d carries %+v: %w", u.GetKind(), u.GetName(), u.GetGeneration(), a, errOther)
	}

	for i, w := range path {
		got := a.Trace[i]
		if got.Kind != w.kind || got.Name != w.name || got.Field != w.field || got.Generation == 0 {
			return fmt.Errorf("%s %q: hop %d is %+v, want %+v: %w", u.GetKind(), u.GetName(), i, got, w, errOther)
		}
	}

	if a.Trace[0].Attestations["metadata.annotations[jira]"] != ticket || a.Trace[len(path)-1].Generation != a.Generation {
		return fmt.Errorf("%s %q: trace %+v does not attest %s: %w", u.GetKind(), u.GetName(), a.Trace, ticket, errOther)
	}

	return nil
}

// checkGate checks the gate's way: closed, open for exactly Update, closed
// once the provider had synced the generation that the opening made.
func (s *Scenario) checkGate(h *history) error {
	var (
		opened     *v1alpha1.GateRecord
		lastOpen   *unstructured.Unstructured
		closedOnce bool
	)

	for _, u := range h.of(kindManaged) {
		set := resource.Strings(u.Object, "spec", "managementPolicies")

		switch {
		case slices.Equal(set, closedSet()):
			closedOnce = closedOnce || opened != nil
		case slices.Equal(set, []string{"Observe", "LateInitialize", "Update"}):
			rec, err := allowance.ParseGate(u)
			if err != nil || rec == nil || !slices.Equal(rec.Actions, []string{"Update"}) || closedOnce {
				return fmt.Errorf("the gate opened with record %+v (%w)", rec, errOther)
			}

			if opened == nil && rec.Generation != u.GetGeneration() {
				return fmt.Errorf("the gate's generation is %d, but opening it made %d: %w", rec.Generation, u.GetGeneration(), errOther)
			}

			opened, lastOpen = rec, u
		default:
			return fmt.Errorf("the gate was %v: %w", set, errOther)
		}
	}

	if opened == nil || !closedOnce {
		return fmt.Errorf("the gate never opened and closed: %w", errOther)
	}

	c, ok := resource.ConditionOf(lastOpen, resource.ConditionSynced)
	if !ok || !c.True() || c.ObservedGeneration < opened.Generation {
		return fmt.Errorf("the gate closed when the provider reported %+v, before generation %d: %w", c, opened.Generation, errOther)
	}

	s.narrator.Sayf("The gate was open for %s, from generation %d until the provider had synced it.",
		strings.Join(opened.Actions, ", "), opened.Generation)

	return nil
}
