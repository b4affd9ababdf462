// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// guard tries to move the gate by hand and by a function.
func (s *Scenario) guard(ctx context.Context) error {
	s.narrator.Sayf("Not by hand, not even the administrator:")

	if err := s.refused(ctx, "", []string{"only Kausality moves the gate"},
		"patch", "object.kubernetes.crossplane.io", s.mr, "--type=merge", "-p", `{"spec":{"managementPolicies":["*"]}}`); err != nil {
		return err
	}

	s.narrator.Sayf("And not by deleting the resource, whose provider would then forget the external object:")

	if err := s.refused(ctx, "", []string{"gate is not open for Delete"},
		"delete", "object.kubernetes.crossplane.io", s.mr, "--wait=false"); err != nil {
		return err
	}

	s.narrator.Sayf("A Composition without function-kausality that stamps %q, or nothing at all, cannot either.", "*")

	for _, policies := range []string{`managementPolicies: ["*"]`, ""} {
		if err := s.rogue(ctx, policies); err != nil {
			return err
		}
	}

	if _, err := s.quietly(ctx, "", "apply", "-f", s.manifest("composition.yaml")); err != nil {
		return err
	}

	return Eventually(ctx, "the closed gate", s.settled)
}

// rogue replaces the Composition by one that has no gate, waits until
// Crossplane has used it, and checks that the gate did not move.
func (s *Scenario) rogue(ctx context.Context, policies string) error {
	text, err := s.readManifest("composition.yaml")
	if err != nil {
		return err
	}

	text, _, _ = strings.Cut(text, "  # Last: it lets")
	if policies != "" {
		text = strings.Replace(text, "            providerConfigRef:", "            "+policies+"\n            providerConfigRef:", 1)
	}

	path := filepath.Join(s.stack.Dir(), "rogue.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write manifest: %w", err)
	}

	before, err := s.revision(ctx)
	if err != nil {
		return err
	}

	if _, err := s.quietly(ctx, "", "apply", "-f", path); err != nil {
		return err
	}

	ran := func(ctx context.Context) error { return s.ranAfter(ctx, before, policies) }
	if err := Eventually(ctx, "a run of the other Composition", ran); err != nil {
		return err
	}

	return stays(ctx, quiet, "the closed gate", s.closed)
}

// revision is the CompositionRevision the XR uses.
func (s *Scenario) revision(ctx context.Context) (string, error) {
	xr, err := s.composite(ctx)
	if err != nil {
		return "", err
	}

	return resource.String(xr.Object, "spec", "compositionRevisionRef", "name"), nil
}

// ranAfter checks that the XR has taken up another revision, and, where that
// stamps a wrong value, that Crossplane reports the refusal.
func (s *Scenario) ranAfter(ctx context.Context, revision, policies string) error {
	now, err := s.revision(ctx)
	if err != nil {
		return err
	}

	if now == revision {
		return fmt.Errorf("the XR still uses %s: %w", now, errOther)
	}

	if policies == "" {
		return nil
	}

	events := &corev1.EventList{}
	if err := s.client.List(ctx, events); err != nil {
		return fmt.Errorf("cannot list events: %w", err)
	}

	for _, e := range events.Items {
		if e.InvolvedObject.Name == s.xr && strings.Contains(e.Message, "only Kausality moves the gate") {
			return nil
		}
	}

	return fmt.Errorf("no event on %s tells of the refused gate: %w", s.xr, errOther)
}

// copied checks that the XR's allowances are its own though Crossplane copies
// the Claim's annotations to it.
func (s *Scenario) copied(ctx context.Context) error {
	h, err := s.changeSize(ctx, "medium")
	if err != nil {
		return err
	}

	if err := s.checkAllowances(h, false); err != nil {
		return err
	}

	for _, u := range h.of(kindXR) {
		if strings.Contains(resource.Annotation(u, v1alpha1.AnnotationAllowances), "kind: XDatabase\n  mutation") {
			return fmt.Errorf("XDatabase %q carried the Claim's allowances: %w", s.xr, errOther)
		}
	}

	claim, err := s.claim(ctx)
	if err != nil {
		return err
	}

	xr, err := s.composite(ctx)
	if err != nil {
		return err
	}

	if resource.Annotation(xr, "jira") != ticket {
		return fmt.Errorf("the XR has no copy of the Claim's annotations, so this showed nothing: %w", errOther)
	}

	if resource.Annotation(claim, v1alpha1.AnnotationTrace) == resource.Annotation(xr, v1alpha1.AnnotationTrace) {
		return fmt.Errorf("XDatabase %q carries the Claim's trace: %w", s.xr, errOther)
	}

	return nil
}

// forge tries to write and to remove our annotations by hand.
func (s *Scenario) forge(ctx context.Context) error {
	before, err := s.all(ctx)
	if err != nil {
		return err
	}

	forged := v1alpha1.AnnotationAllowances + `=[{"kind":"XDatabase","mutation":"spec","generation":99,"initiator":"hans@example.com"}]`

	for _, u := range before {
		name := strings.ToLower(u.GetKind()) + "." + u.GroupVersionKind().Group + "/" + u.GetName()

		if err := s.refused(ctx, hans, []string{"only Kausality writes annotation " + v1alpha1.AnnotationAllowances},
			"annotate", "--overwrite", name, forged); err != nil {
			return err
		}

		if _, err := s.kubectl(ctx, hans, "annotate", name, v1alpha1.AnnotationAllowances+"-", v1alpha1.AnnotationTrace+"-"); err != nil {
			return err
		}
	}

	after, err := s.all(ctx)
	if err != nil {
		return err
	}

	for i, u := range after {
		for _, key := range []string{v1alpha1.AnnotationAllowances, v1alpha1.AnnotationTrace} {
			if resource.Annotation(u, key) != resource.Annotation(before[i], key) {
				return fmt.Errorf("%s %q: annotation %s changed from %q to %q: %w", u.GetKind(), u.GetName(), key,
					resource.Annotation(before[i], key), resource.Annotation(u, key), errOther)
			}
		}
	}

	return nil
}

// trace asks who did it.
func (s *Scenario) trace(ctx context.Context) error {
	out, err := s.kubectl(ctx, anna, "kausality", "trace", "object.kubernetes.crossplane.io/"+s.mr)
	if err != nil {
		return err
	}

	return mentions(out, hansUser, ticket, claimNamespace+"/"+claimName, s.xr, s.mr, fieldSize, fieldData)
}
