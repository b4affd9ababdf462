// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// plantedSecret is a Secret with a credential that [corpus.Leaks] knows.
const plantedSecret = `
apiVersion: v1
kind: Secret
stringData: {image: IMAGE, password: planted-%s}`

// onPlanted warns of what changes the Secret, and has it decided and recorded.
const onPlanted = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: hushed}
spec:
  match:
    resourceRules: [{apiGroups: [""], resources: [secrets]}]
    objectSelector: {matchLabels: {crossplane.io/composite: hushed}}
  validationActions: [%s]`

// TestACredentialIsReportedNowhere has a Secret composed, edited, held and refused,
// and searches for what is in it everywhere else.
func TestACredentialIsReportedNowhere(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	a := newApp(t, "hushed")

	edit := func(ctx context.Context, password string) error {
		u, err := a.live(ctx, "secret")
		if err != nil {
			return err
		}

		return a.Patch(ctx, u, world.Merge(`{"stringData": {"password": "planted-`+password+`"}}`), client.FieldOwner("kubectl-edit"))
	}

	a.play(t, []scenario.Step{
		{Title: "It is composed", Run: func(ctx context.Context) error {
			if err := a.planted(ctx, "first"); err != nil {
				return err
			}

			if err := a.apply(ctx, hans, appOf("hushed", "hushed", "web-1")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "an App", all(a.runs("web-1"), a.settled, a.spent))
		}},
		{Title: "Another one is held", Run: func(ctx context.Context) error {
			if err := a.planted(ctx, "second"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a held Secret", a.says("1 change held", " of Secret", "data.password (masked) → (masked)"))
		}},
		{Title: "It is edited by hand under an Enforcement that warns", Run: func(ctx context.Context) error {
			if err := a.enforced(ctx, "Warn"); err != nil {
				return err
			}

			return edit(ctx, "third")
		}},
		{Title: "And refused under one that denies", Run: func(ctx context.Context) error {
			if err := a.enforced(ctx, "Deny"); err != nil {
				return err
			}

			err := edit(ctx, "fourth")
			if err == nil || corpus.Leaks(err.Error()) {
				return fmt.Errorf("the edit was not refused, or the refusal tells of it: %w", errLeak(err))
			}

			return nil
		}},
		{Title: "Nothing but the Secret, and where it was written, tells it", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "silence", a.silent)
		}},
	})
}

// planted has the Composition of an App ask for a credential.
func (a app) planted(ctx context.Context, password string) error {
	parts := maps.Clone(appParts("v1"))
	parts["secret"] = fmt.Sprintf(plantedSecret, password)

	return a.apply(ctx, admin, templatedWith(parts)(a.name, "v1", stepKausality))
}

// errLeak is what was said, where anything was.
func errLeak(err error) error {
	if err == nil {
		return world.ErrOther
	}

	return err
}

// enforced has changes of the Secret decided under an action.
func (a app) enforced(ctx context.Context, action string) error {
	if err := a.apply(ctx, admin, fmt.Sprintf(onPlanted, action)); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "an Enforcement in force", func(ctx context.Context) error {
		u, err := a.live(ctx, "secret")
		if err != nil {
			return err
		}

		err = a.Patch(ctx, u, world.Merge(`{"data": {"probe": "cGxhbnRlZC1wcm9iZQ=="}}`), client.DryRunAll)
		if denied := err != nil; denied != (action == "Deny") {
			return fmt.Errorf("a change of the Secret was denied: %t: %w", denied, errLeak(err))
		}

		return nil
	})
}

// silent searches for credentials in all objects but those where somebody wrote
// them, in what the plugin prints, in our metrics, and in all logs of ours and
// of the API server.
func (a app) silent(ctx context.Context) error {
	secret, err := a.live(ctx, "secret")
	if err != nil {
		return err
	}

	if raw, err := secret.MarshalJSON(); err != nil || !corpus.Leaks(string(raw)) {
		return fmt.Errorf("the Secret has no credential (%w): %w", err, world.ErrOther)
	}

	said := map[string]string{}
	if err := a.objects(ctx, said); err != nil {
		return err
	}

	for _, args := range [][]string{
		{"trace", "app.shop.example.org", a.name, "-n", "default"},
		{"trace", "app.shop.example.org", a.name, "-n", "default", "-o", "json"},
		{"trace", "secret", secret.GetName(), "-n", secret.GetNamespace()},
		{"trace", "secret", secret.GetName(), "-n", secret.GetNamespace(), "-o", "yaml"},
	} {
		out, err := kausality(ctx, hans, args...)
		if err != nil {
			return err
		}

		said["kubectl kausality "+strings.Join(args, " ")] = out
	}

	if said["metrics"], err = scraped(ctx); err != nil {
		return err
	}

	if err := readLogs(said, "function-kausality.log", "kausality-manager.log", "kube-apiserver.log"); err != nil {
		return err
	}

	return untold(said, corpus.Leaks)
}

// readLogs reads logs, each of which has something in it.
func readLogs(into map[string]string, names ...string) error {
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(running.LogDir(), name))
		if err != nil {
			return err
		}

		if len(raw) == 0 {
			return fmt.Errorf("%s is empty: %w", name, world.ErrOther)
		}

		into[name] = string(raw)
	}

	return nil
}

// untold checks that no text tells what it must not.
func untold(said map[string]string, leaks func(string) bool) error {
	for where, text := range said {
		for line := range strings.Lines(text) {
			if leaks(line) {
				return fmt.Errorf("%s tells a credential: %s: %w", where, line, world.ErrOther)
			}
		}
	}

	return nil
}

// objects reads all objects but Secrets, and the Compositions and their
// revisions in which somebody wrote a credential.
func (a app) objects(ctx context.Context, into map[string]string) error {
	found, err := discovery.NewDiscoveryClientForConfigOrDie(running.Config()).ServerPreferredResources()
	if err != nil {
		return err
	}

	for _, group := range found {
		for _, kind := range group.APIResources {
			if strings.Contains(strings.Join(kind.Verbs, " "), "list") && kind.Kind != "Secret" && !strings.HasPrefix(kind.Kind, "Composition") {
				if err := a.list(ctx, schema.FromAPIVersionAndKind(group.GroupVersion, kind.Kind), into); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

// list reads all objects of a kind.
func (c cluster) list(ctx context.Context, gvk schema.GroupVersionKind, into map[string]string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := c.List(ctx, list); err != nil {
		return client.IgnoreNotFound(err)
	}

	for _, u := range list.Items {
		raw, err := u.MarshalJSON()
		if err != nil {
			return err
		}

		into[fmt.Sprintf("%s %s/%s", gvk.Kind, u.GetNamespace(), u.GetName())] = string(raw)
	}

	return nil
}
