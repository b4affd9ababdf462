// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// kausality runs kubectl kausality as a user and returns what it prints.
func kausality(ctx context.Context, user string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(running.BinDir(), "kubectl-kausality"), args...)
	config := filepath.Join(running.Dir(), "users", user+".kubeconfig")
	if user == admin {
		config = filepath.Join(running.Dir(), "kubeconfig")
	}

	cmd.Env = append(os.Environ(), "KUBECONFIG="+config)

	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl kausality %s: %w: %s", strings.Join(args, " "), err, out)
	}

	return string(out), err
}

// accident is what must survive one.
type accident struct {
	cluster

	// xr, managed and outside are as they were before.
	xr, managed, outside *unstructured.Unstructured
}

// before remembers what there is.
func (a *accident) before(ctx context.Context, xr, managed *unstructured.Unstructured, outside string) error {
	var err error

	a.xr, a.managed = xr, managed
	a.outside, err = a.configMap(ctx, outside)

	return err
}

// untouched checks that the external object is the same, to the last write.
func (a *accident) untouched(ctx context.Context) error {
	u, err := a.configMap(ctx, a.outside.GetName())
	if err == nil && (u.GetUID() != a.outside.GetUID() || u.GetResourceVersion() != a.outside.GetResourceVersion()) {
		err = fmt.Errorf("ConfigMap %q was written: %v, before %v: %w", u.GetName(), u.Object, a.outside.Object, world.ErrOther)
	}

	return err
}

// askedAbout checks that the API server asks the webhook about a resource.
func (c cluster) askedAbout(resources string) check {
	return func(ctx context.Context) error {
		list := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := c.Get(ctx, client.ObjectKey{Name: "kausality"}, list); err != nil {
			return err
		}

		for _, w := range list.Webhooks {
			for _, r := range w.Rules {
				if slices.Contains(r.Resources, resources) {
					return nil
				}
			}
		}

		return fmt.Errorf("the webhook is not asked about %s: %w", resources, world.ErrOther)
	}
}

// missing checks that an object is gone, or its kind.
func (c cluster) missing(u *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
		if err == nil {
			err = fmt.Errorf("%s %q is still there: %w", u.GetKind(), u.GetName(), world.ErrOther)
		}

		return client.IgnoreNotFound(err)
	}
}

// replaced checks that an object is gone, or another one of its name.
func (c cluster) replaced(u *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		live := u.DeepCopy()

		err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
		if err == nil && (live.GetUID() == u.GetUID() || resource.Deleting(live)) {
			err = fmt.Errorf("%s %q is still there: %w", u.GetKind(), u.GetName(), world.ErrOther)
		}

		return client.IgnoreNotFound(err)
	}
}

// stays checks that the managed resource is there, and not being deleted.
func (a *accident) stays(ctx context.Context) error {
	u := a.managed.DeepCopy()

	err := a.Get(ctx, client.ObjectKeyFromObject(u), u)
	if err == nil && (u.GetUID() != a.managed.GetUID() || resource.Deleting(u)) {
		err = fmt.Errorf("%s %q is another, or is being deleted: %w", u.GetKind(), u.GetName(), world.ErrOther)
	}

	return err
}

// adopted checks that an XR is made of the managed resource alone.
func (a *accident) adopted(xr *unstructured.Unstructured) check {
	return func(ctx context.Context) error {
		live, u := xr.DeepCopy(), a.managed.DeepCopy()
		if err := errors.Join(a.Get(ctx, client.ObjectKeyFromObject(xr), live), a.Get(ctx, client.ObjectKeyFromObject(u), u)); err != nil {
			return err
		}

		refs := resource.Composed(live)
		parent, _ := resource.ParentOf(u)

		if len(refs) != 1 || refs[0].Name != u.GetName() || !parent.Is(live) || !resource.Ready(live) {
			return fmt.Errorf("%s %q is made of %v, ready %t, and %q belongs to %v: %w",
				live.GetKind(), live.GetName(), refs, resource.Ready(live), u.GetName(), parent, world.ErrOther)
		}

		return nil
	}
}

// counted checks that a metric of what is left is there.
func counted(left, kind string) check {
	return func(ctx context.Context) error {
		text, err := scraped(ctx)
		if want := fmt.Sprintf(`kind=%q,left=%q}`, kind, left); err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("no metric %s: %w", want, world.ErrOther)
		}

		return err
	}
}

// TestWithoutPoliciesNothingWaitsForKausality comes first, and by itself: nothing
// else may have a gate.
func TestWithoutPoliciesNothingWaitsForKausality(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Store", "ungoverned")
	a := &accident{cluster: c}

	waits := func(want bool) check {
		return func(ctx context.Context) error {
			xr, managed := a.xr.DeepCopy(), a.managed.DeepCopy()
			if err := errors.Join(c.Get(ctx, client.ObjectKeyFromObject(xr), xr), c.Get(ctx, client.ObjectKeyFromObject(managed), managed)); err != nil {
				return err
			}

			for _, u := range []*unstructured.Unstructured{xr, managed} {
				if slices.Contains(u.GetFinalizers(), v1alpha1.Finalizer) != want {
					return fmt.Errorf("%s %q has finalizers %v: %w", u.GetKind(), u.GetName(), u.GetFinalizers(), world.ErrOther)
				}
			}

			return nil
		}
	}

	c.play(t, []scenario.Step{
		a.stand("ungoverned"),
		{Title: "Before Kausality is removed its function and policies are, and it lets go of everything", Run: func(ctx context.Context) error {
			all, composition := &unstructured.Unstructured{}, &unstructured.Unstructured{}
			all.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("AllowancePolicy"))
			composition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"})
			composition.SetName("ungoverned")

			last := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/pipeline/2"}]`))
			if err := c.Patch(ctx, composition, last); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "another revision", func(ctx context.Context) error {
				xr, err := c.xr(ctx)
				if err == nil && resource.RevisionOf(xr) == resource.RevisionOf(a.xr) {
					err = world.ErrOther
				}

				return err
			}); err != nil {
				return err
			}

			if err := c.DeleteAllOf(ctx, all); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "no finalizer", waits(false))
		}},
		{Title: "Once there are policies again, it keeps what they are about", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "stores.yaml"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "finalizers", waits(true))
		}},
		{Title: "What it released is deleted, and nothing is left for other tests", Run: func(ctx context.Context) error {
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("AllowancePolicy"))

			if err := c.DeleteAllOf(ctx, all); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no finalizer", waits(false)); err != nil {
				return err
			}

			if err := c.Delete(ctx, a.xr.DeepCopy()); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of it", func(ctx context.Context) error {
				for _, u := range []*unstructured.Unstructured{a.xr.DeepCopy(), a.managed.DeepCopy()} {
					if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
						return fmt.Errorf("%s %q is there (%w): %w", u.GetKind(), u.GetName(), err, world.ErrOther)
					}
				}

				return nil
			})
		}},
	})
}

func TestAClaimDeletedByAccidentIsTakenBack(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	c := claimed{newCluster(t, "DatabaseClaim", "lost-database")}
	a := &accident{cluster: c.cluster}

	c.play(t, []scenario.Step{
		{Title: "A database is made", Run: func(ctx context.Context) error {
			for _, file := range []string{"xrd.yaml", "composition.yaml", "policies.yaml"} {
				text, err := os.ReadFile(filepath.Join("..", "..", "examples", "claim-with-ticket", file))
				if err == nil {
					err = c.apply(ctx, admin, string(text))
				}

				if err != nil {
					return err
				}
			}

			if err := c.apply(ctx, hans, `{apiVersion: example.org/v1alpha1, kind: DatabaseClaim,
				metadata: {name: lost-database, namespace: default, annotations: {jira: INFRA-1}}, spec: {size: small, engine: postgres}}`); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a database", c.ready); err != nil {
				return err
			}

			xr, managed, err := c.below(ctx)
			if err != nil {
				return err
			}

			return a.before(ctx, xr, managed, xr.GetName())
		}},
		{Title: "Anna, who may not, deletes the Claim: the database stays, and that is said", Run: func(ctx context.Context) error {
			claim, err := c.claim(ctx)
			if err != nil {
				return err
			}

			if err := c.remove(ctx, anna, claim, metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of Claim and XR alone", all(c.missing(claim), c.missing(a.xr), a.stays, a.untouched,
				c.told(a.managed, "KausalityManagedResourceOrphaned"), counted("managed", "Object")))
		}},
		{Title: "Released, it stands by itself", Run: func(ctx context.Context) error {
			if _, err := kausality(ctx, anna, "release", "object.kubernetes.crossplane.io", a.managed.GetName()); err != nil {
				return err
			}

			return still(ctx, all(a.stays, a.untouched, func(ctx context.Context) error {
				u := a.managed.DeepCopy()

				err := c.Get(ctx, client.ObjectKeyFromObject(u), u)
				if err == nil && (len(u.GetOwnerReferences()) > 0 || !strings.Contains(resource.Annotation(u, "kausality.io/trace"), "anna@example.com")) {
					err = fmt.Errorf("owners %v, annotations %v: %w", u.GetOwnerReferences(), u.GetAnnotations(), world.ErrOther)
				}

				return err
			}))
		}},
		{Title: "Another XR adopts it, and Crossplane goes on with it", Run: func(ctx context.Context) error {
			xr := a.xr.DeepCopy()
			if err := c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: example.org/v1alpha1, kind: XDatabase,
				metadata: {name: %s, annotations: {crossplane.io/paused: "true"}}, spec: {size: small, engine: postgres}}`, xr.GetName())); err != nil {
				return err
			}

			if _, err := kausality(ctx, hans, "adopt", "object.kubernetes.crossplane.io/"+a.managed.GetName(),
				"--by", "xdatabase/"+xr.GetName(), "--resume"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "an XR of what was left", a.adopted(xr)); err != nil {
				return err
			}

			return still(ctx, all(a.stays, a.untouched, a.adopted(xr)))
		}},
	})
}

func TestADefinitionDeletedByAccidentCostsNothingOutside(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const kind = "Booth"

	deleted := crdNamed("booths.shop.example.org")
	deleted.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"})

	// Cluster-scoped: Crossplane 2.4 cannot delete the instances of a definition
	// that are namespaced, and waits for somebody to.
	name := "spared-" + strings.ToLower(kind)
	c := newCluster(t, kind, name)
	c.namespace = ""
	a := &accident{cluster: c}
	booth := strings.NewReplacer("Store", kind, "stores", strings.ToLower(kind)+"s", "store-size", strings.ToLower(kind)+"-size",
		"scope: Namespaced", "scope: Cluster",
		", namespace: default}", "}", "kind: Object\n", "kind: Object\n          metadata: {namespace: default}\n",
		"kind: ConfigMap\n          data", "kind: ConfigMap\n          metadata: {namespace: default}\n          data")

	made := func(ctx context.Context) error {
		text, err := os.ReadFile(filepath.Join("testdata", "stores.yaml"))
		if err != nil {
			return err
		}

		return errors.Join(c.apply(ctx, admin, booth.Replace(string(text))), c.apply(ctx, admin, booth.Replace(storeComposition(name, "v1", "data"))))
	}

	c.play(t, []scenario.Step{
		{Title: "A booth is made", Run: func(ctx context.Context) error {
			if err := errors.Join(made(ctx), c.apply(ctx, hans, booth.Replace(storeOf(name, name, "small")))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small booth", all(c.shows("size", "small", "data"), c.settled, c.kept)); err != nil {
				return err
			}

			xr, xrErr := c.xr(ctx)
			parts, partsErr := c.parts(ctx, objectKind())

			return errors.Join(xrErr, partsErr, a.before(ctx, xr, parts["data"], name+"-data"))
		}},
		{Title: "Its definition is deleted: all that stands for something stays", Run: func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(deleted), deleted); err != nil {
				return err
			}

			if err := c.remove(ctx, hans, deleted.DeepCopy(), metav1.DeletePropagationBackground); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end of the definition alone",
				all(c.replaced(deleted), c.missing(a.xr), a.stays, a.untouched, c.told(a.managed, "KausalityManagedResourceOrphaned"), c.askedAbout("booths")))
		}},
		{Title: "A new booth adopts it", Run: func(ctx context.Context) error {
			again := strings.Replace(booth.Replace(storeOf(name, name, "small")), "{name: "+name+"}",
				`{name: `+name+`, annotations: {crossplane.io/paused: "true"}}`, 1)
			if err := errors.Join(made(ctx), c.apply(ctx, hans, again)); err != nil {
				return err
			}

			if _, err := kausality(ctx, hans, "adopt", "object.kubernetes.m.crossplane.io/"+a.managed.GetName(), "-n", namespace,
				"--by", strings.ToLower(kind)+"/"+name, "--resume"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a settled booth of what was left", all(a.stays, a.untouched, a.hasData, c.settled))
		}},
		{Title: "What is allowed reaches it as before", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, booth.Replace(storeOf(name, name, "large"))); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large booth", all(a.stays, a.hasData, c.shows("size", "large", "data"), c.settled))
		}},
	})
}

// hasData checks that the XR goes on with the managed resource, and made no
// second one.
func (a *accident) hasData(ctx context.Context) error {
	xr, err := a.cluster.xr(ctx)
	if err != nil {
		return err
	}

	names := map[string]bool{}
	for _, ref := range resource.Composed(xr) {
		names[ref.Kind+"/"+ref.Name] = true
	}

	if len(names) != 2 || !names["Object/"+a.managed.GetName()] { // The other is a note.
		return fmt.Errorf("%s %q is made of %v: %w", xr.GetKind(), xr.GetName(), names, world.ErrOther)
	}

	return nil
}

func crdNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	u.SetName(name)

	return u
}
