// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// warnedOf checks what somebody is warned of who would make a ChangeApproval.
func warnedOf(ctx context.Context, t *testing.T, user string, cha *v1alpha1.ChangeApproval, words ...string) error {
	t.Helper()

	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cha)
	if err != nil {
		return err
	}

	u := &unstructured.Unstructured{Object: raw}
	u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("ChangeApproval"))

	as := warnedAs(t, user, "system:authenticated")
	if err := as.Create(ctx, u, client.DryRunAll); err != nil {
		return err
	}

	if said := as.Take(); !mentions(said, words...) {
		return fmt.Errorf("warnings %q, want %q: %w", said, words, world.ErrOther)
	}

	return nil
}

// revised waits until an XR is composed by the newest revision of its Composition: what is
// hidden is not seen to be another one.
func (c cluster) revised(ctx context.Context, change check) error {
	was, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if err := change(ctx); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "another revision", func(ctx context.Context) error {
		is, err := c.xr(ctx)
		if err == nil && resource.RevisionOf(is) == resource.RevisionOf(was) {
			err = world.ErrOther
		}

		return err
	})
}

// TestAnApprovalOfWhatIsHiddenIsForAnyValueOnce and says so, and nothing tells the values.
func TestAnApprovalOfWhatIsHiddenIsForAnyValueOnce(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	a := newApp(t, "exact-hidden")
	p := pendingsOf(t, "shop.example.org/v1", "App", namespace, a.name)
	berta := approverNamed(t, "exact-hidden-berta", [3]string{v1alpha1.VerbApprove, "", "secrets"})
	hidden := held{kind: "Secret", field: "data.password"}

	passwords := a.partHistory(t, a.kinds()["secret"], "secret", func(u *unstructured.Unstructured) string {
		text, _ := base64.StdEncoding.DecodeString(resource.String(u.Object, "data", "password"))

		return string(text)
	})

	var digest string

	plant := func(ctx context.Context, password string) error {
		return a.revised(ctx, func(ctx context.Context) error { return a.planted(ctx, password) })
	}

	a.play(t, []scenario.Step{
		{Title: "Another password is held, and hidden", Run: func(ctx context.Context) error {
			if err := errors.Join(a.planted(ctx, "first"), a.apply(ctx, hans, appOf(a.name, a.name, "web-1"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "an App", all(a.runs("web-1"), a.settled, a.spent)); err != nil {
				return err
			}

			if err := plant(ctx, "second"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists(nil, hidden)); err != nil {
				return err
			}

			e, err := p.entry(ctx, hidden)
			if err == nil && (!e.Masked || e.From != "(masked)" || e.To != "(masked)") {
				err = fmt.Errorf("%+v is not masked: %w", e, world.ErrOther)
			}

			digest = e.Digest

			return err
		}},
		{Title: "Who would approve it is told that any value is meant, once", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a warning", func(ctx context.Context) error {
				return warnedOf(ctx, t, berta.name, p.approving("exact-hidden-warned", digest), "the value of data.password of Secret",
					"is hidden: any value is approved, once")
			})
		}},
		{Title: "The value goes through that is requested by then", Run: func(ctx context.Context) error {
			if err := plant(ctx, "third"); err != nil {
				return err
			}

			if err := still(ctx, passwords.were("planted-first")); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, p, "exact-hidden", digest); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a third password", all(passwords.were("planted-first", "planted-third"),
				p.becomes("exact-hidden", v1alpha1.ApprovalStateApplied), p.finished, a.settled, a.spent))
		}},
		{Title: "And the next does not, though its digest is the same", Run: func(ctx context.Context) error {
			if err := plant(ctx, "fourth"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists(nil, hidden)); err != nil {
				return err
			}

			got, err := p.digest(ctx, hidden)
			if err == nil && got != digest {
				err = fmt.Errorf("the digest tells the value: %w", world.ErrOther)
			}

			return errors.Join(err, still(ctx, all(passwords.were("planted-first", "planted-third"), a.carries(0))))
		}},
		{Title: "Until it is approved anew", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, p, "exact-hidden-again", digest); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a fourth password", all(passwords.were("planted-first", "planted-third", "planted-fourth"),
				p.becomes("exact-hidden-again", v1alpha1.ApprovalStateApplied), a.settled, a.spent))
		}},
		{Title: "Nothing but the Secret, and where it was written, tells one", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "silence", a.silent)
		}},
	})
}

// secretStore is the Composition of a store whose objects have a password.
func secretStore(name, password string) string {
	return strings.ReplaceAll(storeComposition(name, "v1", "data"), "{version: v1}", "{version: v1, password: whispered-"+password+"}")
}

// TestAFieldThatIsNamedAsACredentialIsHiddenToo where it is of an external object.
func TestAFieldThatIsNamedAsACredentialIsHiddenToo(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-password")
	berta := approverNamed(t, "exact-password-berta", approvesStores()...)
	hidden := held{kind: "Object", field: "spec.forProvider.manifest.data.password"}

	passwords := s.outsideHistory(t, func(u *unstructured.Unstructured) string { return resource.String(u.Object, "data", "password") })

	var digest string

	s.play(t, []scenario.Step{
		{Title: "Another password is held, and hidden", Run: func(ctx context.Context) error {
			if err := errors.Join(s.applyFile(ctx, "stores.yaml"), s.apply(ctx, admin, secretStore(s.composition, "first")), s.resized(ctx, hans, "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small store", all(s.shows("password", "whispered-first", "data"), s.settled)); err != nil {
				return err
			}

			if err := s.apply(ctx, admin, secretStore(s.composition, "second")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", s.pending.lists(nil, hidden, held{kind: "ConfigMap", field: "data.password"})); err != nil {
				return err
			}

			e, err := s.pending.entry(ctx, hidden)
			if err == nil && !e.Masked {
				err = fmt.Errorf("%+v is not masked: %w", e, world.ErrOther)
			}

			digest = e.Digest

			return err
		}},
		{Title: "Whichever it is by then goes through, for its provider as well", Run: func(ctx context.Context) error {
			if err := s.revised(ctx, func(ctx context.Context) error { return s.apply(ctx, admin, secretStore(s.composition, "third")) }); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, s.pending, "exact-password", digest); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a third password outside", all(s.shows("password", "whispered-third", "data"),
				s.pending.becomes("exact-password", v1alpha1.ApprovalStateApplied), s.spent)); err != nil {
				return err
			}

			return still(ctx, all(passwords.were("whispered-first", "whispered-third"), s.note("password", "whispered-first")))
		}},
		{Title: "Nothing of ours tells it", Run: func(ctx context.Context) error {
			said := map[string]string{}

			for _, gvk := range []schema.GroupVersionKind{
				v1alpha1.GroupVersion().WithKind("PendingChange"), v1alpha1.GroupVersion().WithKind("ChangeApproval"), s.kind,
				{Version: "v1", Kind: "Event"},
				{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
			} {
				if err := s.list(ctx, gvk, said); err != nil {
					return err
				}
			}

			for kind, name := range map[string]string{"PendingChange": s.pending.approving("").Spec.PendingChange, "ChangeApproval": "exact-password", "Store": s.name} {
				if said[kind+" "+namespace+"/"+name] == "" {
					return fmt.Errorf("%s %q is not among what was read: %w", kind, name, world.ErrOther)
				}
			}

			u, err := s.part(ctx, objectKind(), "data")
			if err != nil {
				return err
			}

			said["annotations of the Object"] = corpus.Ours(u)

			if said["metrics"], err = scraped(ctx); err != nil {
				return err
			}

			if err := readLogs(said, "function-kausality.log", "kausality-manager.log"); err != nil {
				return err
			}

			return untold(said, func(line string) bool { return strings.Contains(line, "whispered-") })
		}},
	})
}
