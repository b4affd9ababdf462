// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// packages are those of one version, as they run.
type packages struct {
	version            string
	provider, function *unstructured.Unstructured
}

// install applies an install.yaml and runs what it brings, until all of it is
// healthy. What ran before still does.
func (l *life) install(t *testing.T, r *release) packages {
	t.Helper()

	l.c.apply(t, r.install)

	out := packages{version: r.version}
	out.provider = l.c.installed(t, "Provider", providerName, r.version)
	out.function = l.c.installed(t, "Function", functionName, r.version)

	l.net.serveIP(t, l.c, providerName)
	l.net.run(t, l.c, out.provider)
	l.net.run(t, l.c, out.function)

	for kind, name := range map[string]string{"Provider": providerName, "Function": functionName, "Configuration": "configuration-kausality"} {
		l.c.condition(t, pkg(kind, name), "Healthy")
	}

	return out
}

// stop ends what runs of some packages.
func (l *life) stop(t *testing.T, p packages) {
	t.Helper()

	l.net.stop(t, p.provider.GetName())
	l.net.stop(t, p.function.GetName())
}

// changes goes from one version to another while a gate is open, and what opened
// it is under way.
func (l *life) changes(t *testing.T, from packages, to *release, size string) packages {
	t.Helper()

	// 1. A gate is open, and nobody applies anything.
	resume := l.db.idle(t)
	before := l.db.forProvider()

	l.db.resize(t, size)
	l.db.opens(t)

	// 2. Old and new run side by side; the one that leads ends last.
	out := l.install(t, to)

	if err := l.db.open(t.Context()); err != nil {
		t.Errorf("While both run: %v", err)
	}

	l.stop(t, from)

	// 3. What is asked for passes, by the new one alone, and what was under way lands.
	if got, err := l.db.outside(t.Context()); err != nil || got == size {
		t.Errorf("Outside is %q before anybody applied anything: %v", got, err)
	}

	resume()
	l.db.settles(t, size)
	l.db.unrefused(t)
	l.db.guarded(t)

	wanted := resource.Map(map[string]any{"forProvider": before}, "forProvider")
	if err := unstructured.SetNestedField(wanted, size, "manifest", "data", "size"); err != nil {
		t.Fatal(err)
	}

	if diff := compare(wanted, l.db.forProvider()); diff != "" {
		t.Errorf("More than the size has changed (-want, +got):\n%s", diff)
	}

	l.checkVersion(t, to.version)

	return out
}

// checkVersion checks what kubectl kausality version says.
func (l *life) checkVersion(t *testing.T, want string) {
	t.Helper()

	var said struct {
		Installed []struct{ Program, Object, Version string } `json:"installed"`
		Problems  []string                                    `json:"problems"`
	}

	l.kausality(t, &said, "version", "--output=json")

	got := map[string]string{}
	for _, i := range said.Installed {
		got[i.Program+" by "+i.Object] = i.Version
	}

	wanted := map[string]string{
		"kausality-manager by Provider " + providerName:  want,
		"function-kausality by Function " + functionName: want,
	}
	if diff := compare(wanted, got); diff != "" || len(said.Problems) > 0 {
		t.Errorf("kubectl kausality version (-want, +got):\n%s%q", diff, said.Problems)
	}
}

// survives deletes the Provider by accident, and the Configuration, which would
// bring another one, and installs them again.
func (l *life) survives(t *testing.T, p packages, r *release) packages {
	t.Helper()

	// 1. Something is under way.
	resume := l.db.idle(t)

	l.db.resize(t, "large")
	l.db.opens(t)

	policies := l.count(t, "AllowancePolicy")

	// 2. They go, and with them all that Crossplane made for them.
	l.delete(t, pkg("Configuration", configurationName), pkg("Provider", providerName))
	l.c.gone(t, p.provider)
	l.net.stop(t, p.provider.GetName())

	// 3. Only our CRDs do not, of which the garbage collector has taken off who is gone.
	world.Eventually(t, "CRDs that outlive their Provider", func(ctx context.Context) error {
		for _, name := range definitions() {
			crd := prototype("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
			if err := l.c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return err
			}

			refs := crd.GetOwnerReferences()
			if len(refs) != 1 || refs[0].Kind != "Namespace" || crd.GetDeletionTimestamp() != nil {
				return fmt.Errorf("%s: owned by %v, deleted at %v: %w", name, refs, crd.GetDeletionTimestamp(), world.ErrOther)
			}
		}

		return nil
	})

	// 4. Nobody lost a policy, or moves a gate meanwhile.
	if got := l.count(t, "AllowancePolicy"); got != policies {
		t.Errorf("Of %d policies %d are left", policies, got)
	}

	if err := l.db.open(t.Context()); err != nil {
		t.Errorf("Without the manager: %v", err)
	}

	l.db.guarded(t)

	// 5. What was under way goes on where it was.
	out := l.install(t, r)

	resume()
	l.db.settles(t, "large")
	l.db.unrefused(t)

	return out
}

// delete deletes objects with all that they own, one after another.
func (l *life) delete(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()

	for _, u := range objects {
		if err := l.c.Delete(t.Context(), u, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}

		l.c.gone(t, u)
	}
}

func (l *life) count(t *testing.T, kind string) int {
	t.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(prototype("kausality.io", "v1alpha1", kind+"List").GroupVersionKind())

	if err := l.c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	return len(list.Items)
}

func definitions() []string {
	return []string{
		"allowancebindings.kausality.io", "allowancepolicies.kausality.io", "changeapprovals.kausality.io", "enforcements.kausality.io",
		"pendingchanges.kausality.io", "upgradeallowances.kausality.io",
	}
}
