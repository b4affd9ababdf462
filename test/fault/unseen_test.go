// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// unseen is an object that somebody edits while nobody looks.
type unseen struct {
	client.Client

	root *unstructured.Unstructured
	// has checks the size of what is below it, of which the root's controller asks for it.
	has func(ctx context.Context, size string) error
}

// pending is what is held below it.
func (u unseen) pending(ctx context.Context) (*v1alpha1.PendingChange, error) {
	pch := &v1alpha1.PendingChange{}
	key := client.ObjectKey{Namespace: u.root.GetNamespace(), Name: pending.Name(u.root.GroupVersionKind().GroupKind(), u.root.GetName())}

	return pch, u.Get(ctx, key, pch)
}

// knows is a client of somebody, with all rights, that knows our kinds.
func knows(t *testing.T, name string) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	config := running.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters", "system:authenticated"}}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// approve has somebody approve what is listed.
func (u unseen) approve(t *testing.T, name, user string) error {
	t.Helper()

	pch, err := u.pending(t.Context())
	if err != nil {
		return err
	}

	return knows(t, user).Create(t.Context(), &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: pch.Namespace, Name: name},
		Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Digest: pch.Status.Digest},
	})
}

// became checks what a ChangeApproval has come to.
func (u unseen) became(ctx context.Context, name string, state v1alpha1.ApprovalState, words string) error {
	cha := &v1alpha1.ChangeApproval{}
	if err := u.Get(ctx, client.ObjectKey{Namespace: u.root.GetNamespace(), Name: name}, cha); err != nil {
		return err
	}

	if len(cha.Status.Changes) != 1 || cha.Status.Changes[0].State != state || !strings.Contains(cha.Status.Changes[0].Message, words) {
		return fmt.Errorf("ChangeApproval %q is %+v, not %s: %w", name, cha.Status.Changes, state, world.ErrOther)
	}

	return nil
}

// TestWhatIsEditedWhileNobodyLooksTakesTwoPeople for the one may be who has edited it.
func TestWhatIsEditedWhileNobodyLooksTakesTwoPeople(t *testing.T) {
	world.Long(t)

	install(t)

	d := newDatabase(t, "unseen")
	if err := d.make(t.Context()); err != nil {
		t.Fatal(err)
	}

	stand, object := newStand(t, "unseen")

	for name, tc := range map[string]struct {
		unseen

		// dead are those who see nothing of the edit when it is made.
		dead []string
	}{
		"Claim": {
			unseen: unseen{root: d.object(claim), has: func(ctx context.Context, size string) error {
				// Crossplane may have passed it on to the XR before anybody was asked: it is held below then.
				u, err := d.get(ctx, managed)

				return sizeIs(u, err, size, manifest("size")...)
			}},
			dead: []string{"crossplane", "kausality-manager"},
		},
		"XR": {
			unseen: unseen{root: stand, has: func(ctx context.Context, size string) error {
				u := object.DeepCopy()
				err := d.Get(ctx, client.ObjectKeyFromObject(u), u)

				return sizeIs(u, err, size, manifest("size")...)
			}},
			// A run of the pipeline that fails, for a write is refused while no webhook answers, forgets which spec
			// was seen last, and so that nobody saw the edit: docs/approvals.md.
			dead: []string{"crossplane", "kausality-manager"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			u := tc.unseen
			u.Client = knows(t, "system:admin")

			// 1. Edna edits it, and nobody is asked.
			for _, p := range tc.dead {
				if err := running.Process(p).Kill(); err != nil {
					t.Fatal(err)
				}
			}

			hooks := &unstructured.Unstructured{}
			hooks.SetAPIVersion("admissionregistration.k8s.io/v1")
			hooks.SetKind("MutatingWebhookConfiguration")
			hooks.SetName(v1alpha1.NameWebhooks)

			if err := u.Delete(ctx, hooks); err != nil {
				t.Fatal(err)
			}

			edna := world.Impersonate(t, running, "edna", "system:masters")
			edited := scenario.Eventually(ctx, "an edit", func(ctx context.Context) error { // The API server forgets them a moment later.
				return edna.Patch(ctx, u.root.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`))
			})

			for _, p := range slices.Backward(tc.dead) {
				if err := errors.Join(edited, running.Process(p).Restart(ctx)); err != nil {
					t.Fatal(err)
				}
			}

			// 2. What follows is held, and nobody knows whose it is.
			if err := scenario.Eventually(ctx, "a list", func(ctx context.Context) error {
				pch, err := u.pending(ctx)
				if err != nil {
					return err
				}

				if s := pch.Status; s.Total != 1 || !slices.Equal(s.Requesters, []string{pending.Unknown}) || s.Required != 2 || s.Changes[0].Digest == "" {
					return fmt.Errorf("%+v: %w", s, world.ErrOther)
				}

				return nil
			}); err != nil {
				t.Fatal(err)
			}

			// 3. One approves it, who may be Edna.
			if err := u.approve(t, "unseen-edna-"+strings.ToLower(name), "edna"); err != nil {
				t.Fatal(err)
			}

			if err := scenario.Eventually(ctx, "a state", func(ctx context.Context) error {
				return u.became(ctx, "unseen-edna-"+strings.ToLower(name), v1alpha1.ApprovalStateWaiting, "1 of 2 approvals")
			}); err != nil {
				t.Fatal(err)
			}

			if err := u.has(ctx, "small"); err != nil {
				t.Fatal(err)
			}

			// 4. And another.
			if err := u.approve(t, "unseen-berta-"+strings.ToLower(name), "berta"); err != nil {
				t.Fatal(err)
			}

			if err := scenario.Eventually(ctx, "a large one", func(ctx context.Context) error {
				return errors.Join(u.has(ctx, "large"), u.became(ctx, "unseen-berta-"+strings.ToLower(name), v1alpha1.ApprovalStateApplied, ""),
					u.became(ctx, "unseen-edna-"+strings.ToLower(name), v1alpha1.ApprovalStateApplied, ""))
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sizeIs checks a size that was read.
func sizeIs(u *unstructured.Unstructured, err error, size string, path ...string) error {
	if err != nil {
		return err
	}

	if got := resource.String(u.Object, path...); got != size {
		return fmt.Errorf("the size is %q, not %q: %w", got, size, world.ErrOther)
	}

	return nil
}
