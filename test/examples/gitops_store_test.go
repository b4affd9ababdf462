// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Kinds of what comes from Git, and what is made of it.
var (
	storeKind     = schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"}
	objectKind    = schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// storeFromGit is one that a tool applies from Git, with approvals of its changes.
type storeFromGit struct {
	client.Client

	shown manifests
	// name of the store, which is what names of approvals begin with.
	name string
	tool tool

	changes, approvals *syncing
	// first is the digest of the first change, which is asked for once more later.
	first string
}

// store is what is in Git.
func (s *storeFromGit) store(size string) *unstructured.Unstructured {
	u := world.Prototype(storeKind)
	u.SetNamespace(team)
	u.SetName(s.name)
	with(map[string]any{"size": size, "crossplane": map[string]any{"compositionRef": map[string]any{"name": "stores-from-git"}}}, "spec")(u)

	return u
}

// approval is that of the page, of a digest of what is listed for the store.
func (s *storeFromGit) approval(t *testing.T, suffix, digest string) *unstructured.Unstructured {
	t.Helper()

	pch, err := s.pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return s.shown.get(t, "ChangeApproval chg-1234", with(s.name+"-"+suffix, "metadata", "name"),
		with(pch.Name, "spec", "pendingChange"), with(digest, "spec", "digest"))
}

// eventually waits until all is as it should be.
func (s *storeFromGit) eventually(t *testing.T, what string, checks ...func(context.Context) error) {
	t.Helper()

	world.Eventually(t, what, func(ctx context.Context) error {
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}

		return nil
	})
}

// pending is the PendingChange of the store.
func (s *storeFromGit) pending(ctx context.Context) (*v1alpha1.PendingChange, error) {
	list := &v1alpha1.PendingChangeList{}
	if err := s.List(ctx, list, client.InNamespace(team)); err != nil {
		return nil, err
	}

	i := slices.IndexFunc(list.Items, func(p v1alpha1.PendingChange) bool { return p.Spec.ObjectRef.Name == s.name })
	if i < 0 {
		return nil, fmt.Errorf("there is no PendingChange of Store %q: %w", s.name, world.ErrOther)
	}

	return &list.Items[i], nil
}

// held waits until a change of the size is listed as asked for by who applies changes, and
// nothing else is.
func (s *storeFromGit) held(t *testing.T, from, to string) *v1alpha1.PendingChange {
	t.Helper()

	var out *v1alpha1.PendingChange

	s.eventually(t, "a change that is held", func(ctx context.Context) error {
		pch, err := s.pending(ctx)
		if err != nil {
			return err
		}

		c := pch.Status.Changes
		if len(c) != 1 || c[0].Ref.Kind != "Object" || c[0].From != from || c[0].To != to || !slices.Equal(pch.Status.Requesters, []string{storesUser}) {
			return fmt.Errorf("%+v: %w", pch.Status, world.ErrOther)
		}

		out = pch

		return nil
	}, s.says("1 change held"))

	return out
}

// of reads an object by the name of the store.
func (s *storeFromGit) of(ctx context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u := world.Prototype(gvk)

	return u, s.Get(ctx, client.ObjectKey{Namespace: team, Name: s.name}, u)
}

// outside checks the size of the external object.
func (s *storeFromGit) outside(size string) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := s.of(ctx, configMapKind)
		if got := resource.String(u.Object, "data", "size"); err == nil && got != size {
			err = fmt.Errorf("its size is %q outside, not %q: %w", got, size, world.ErrOther)
		}

		return err
	}
}

// gate checks the management policies of the managed resource.
func (s *storeFromGit) gate(policies string) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := s.of(ctx, objectKind)
		if got := strings.Join(resource.Strings(u.Object, "spec", "managementPolicies"), " "); err == nil && got != policies {
			err = fmt.Errorf("managementPolicies are %q: %w", got, world.ErrOther)
		}

		return err
	}
}

// says checks what the store's condition says of its newest generation.
func (s *storeFromGit) says(text string) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := s.of(ctx, storeKind)
		if err != nil {
			return err
		}

		condition, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if !strings.Contains(condition.Message, text) || !strings.Contains(condition.Message, fmt.Sprintf("generation %d:", u.GetGeneration())) ||
			strings.HasSuffix(text, "settled") && !strings.HasSuffix(condition.Message, text) {
			return fmt.Errorf("condition %q of generation %d: %w", condition.Message, u.GetGeneration(), world.ErrOther)
		}

		return nil
	}
}

// becomes checks in which state the change of a ChangeApproval is.
func (s *storeFromGit) becomes(suffix string, state v1alpha1.ApprovalState) func(context.Context) error {
	return func(ctx context.Context) error {
		cha := &v1alpha1.ChangeApproval{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: team, Name: s.name + "-" + suffix}, cha); err != nil {
			return err
		}

		if len(cha.Status.Changes) != 1 || cha.Status.Changes[0].State != state {
			return fmt.Errorf("ChangeApproval %q is %+v: %w", cha.Name, cha.Status, world.ErrOther)
		}

		return nil
	}
}

// gone checks that there is no such ChangeApproval.
func (s *storeFromGit) gone(suffix string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKey{Namespace: team, Name: s.name + "-" + suffix}, &v1alpha1.ChangeApproval{})
		if err == nil {
			err = fmt.Errorf("ChangeApproval %s-%s is there: %w", s.name, suffix, world.ErrOther)
		}

		if apierrors.IsNotFound(err) {
			return nil
		}

		return err
	}
}

// tracedTo checks which ChangeApproval the managed resource says that it follows from.
func (s *storeFromGit) tracedTo(suffix string) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := s.of(ctx, objectKind)
		if trace := u.GetAnnotations()[v1alpha1.AnnotationTrace]; err == nil && !strings.Contains(trace, s.name+"-"+suffix) {
			err = fmt.Errorf("its trace is %s: %w", trace, world.ErrOther)
		}

		return err
	}
}

// hans types a command.
func (s *storeFromGit) hans(t *testing.T, text string) {
	t.Helper()

	if err := scenario.Eventually(t.Context(), text, func(ctx context.Context) error {
		out, err := shell().Type(ctx, play.Command{User: "hans", Text: text})
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
