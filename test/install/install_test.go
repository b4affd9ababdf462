// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// What Crossplane calls what a Configuration depends on, and install.yaml as well.
const (
	providerName      = "kausality-io-provider-kausality"
	functionName      = "kausality-io-function-kausality"
	configurationName = "configuration-kausality"
)

// life is that of our packages in a cluster.
type life struct {
	c      *cluster
	net    *network
	db     *database
	plugin string
	start  time.Time
}

// done says how far it is.
func (l *life) done(t *testing.T, what string) {
	t.Helper()
	t.Logf("%5s: %s", time.Since(l.start).Round(time.Second/10), what)
}

// TestPackagesAreInstalledUpgradedRolledBackAndRemoved plays steps that build on
// each other.
func TestPackagesAreInstalledUpgradedRolledBackAndRemoved(t *testing.T) {
	world.Long(t)

	l := &life{c: connect(t, running.Config(), nil), net: services, start: time.Now()}
	l.net.serveNames(t, l.c)

	built, mirror := build(t), registryOf(t)
	l.plugin = built.plugin

	older := built.older
	older.push(t, mirror)
	l.done(t, "built and pushed")

	// 1. As people type it, without what only install.yaml can bring.
	l.lacksRights(t, older)
	l.done(t, "the packages are installed by crossplane xpkg install, and the manager says which command is missing")

	// 2. With it.
	first := l.install(t, older)
	l.done(t, "install.yaml is applied, and all is healthy")

	l.enforces(t)

	l.db = newDatabase(t, l.c, l.rights)
	l.done(t, "a database is governed")

	// 3. To the next version and back, each time with a gate open and allowances in flight.
	built.wait(t)
	l.check(t, mirror, first)
	built.newer.push(t, mirror)

	second := l.changes(t, first, built.newer, "medium")
	l.done(t, "upgraded with a gate open")

	refused := l.uninstallsUnderAManager(t)
	third := l.changes(t, second, older, "small")
	refused()
	l.done(t, "rolled back with a gate open")

	// 4. The Provider is deleted by accident, and then for good.
	last := l.survives(t, third, older)
	l.done(t, "deleted by accident and installed again with a gate open")

	l.leaves(t, last)
	l.done(t, "removed")
}

// check checks what Crossplane made of the packages.
func (l *life) check(t *testing.T, mirror string, p packages) {
	t.Helper()

	c := l.c

	c.checkCRDs(t, p.provider)
	c.checkManager(t, mirror, c.deployment(t, p.provider))
	c.checkFunction(t, mirror, c.deployment(t, p.function))
	c.checkRights(t, p.provider)
	l.checkCall(t, p.function)

	listens(t, c.container(t, &c.deployment(t, p.function).Spec.Template).Path, ":9443", ":8080")
	listens(t, c.container(t, &c.deployment(t, p.provider).Spec.Template).Path, ":9443", ":8080", ":8081")
	l.checkVersion(t, p.version)

	checkDoctor(t, l.plugin, p.version)
}

func pkg(kind, name string) *unstructured.Unstructured {
	u := prototype("pkg.crossplane.io", "v1", kind)
	u.SetName(name)

	return u
}

// installed waits until a package is at a version, as far as it can be: its
// runtime is healthy when its pods are ready. It returns the revision.
func (c *cluster) installed(t *testing.T, kind, name, version string) *unstructured.Unstructured {
	t.Helper()

	revision := pkg(kind+"Revision", "")

	world.Eventually(t, kind+" "+name+" at "+version, func(ctx context.Context) error {
		p := pkg(kind, name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}

		if c, _ := resource.ConditionOf(p, "Installed"); c.ObservedGeneration != p.GetGeneration() {
			return fmt.Errorf("generation %d is not looked at yet: %w", p.GetGeneration(), world.ErrOther)
		}

		current := resource.String(p.Object, "status", "currentRevision")
		if err := c.Get(ctx, client.ObjectKey{Name: current}, revision); err != nil {
			return err
		}

		spec := resource.Map(revision.Object, "spec")
		if image, _ := spec["image"].(string); spec["desiredState"] != "Active" || !strings.HasSuffix(image, ":"+version) {
			return fmt.Errorf("revision %s is %v of %s: %w", current, spec["desiredState"], image, world.ErrOther)
		}

		return nil
	})

	c.established(t, revision)

	return revision
}

// established waits until what a revision brings is there. Where it could not take
// that over from another revision at once, Crossplane tries again after up to a
// minute, or when it sees either of them change: so they do.
func (c *cluster) established(t *testing.T, revision *unstructured.Unstructured) {
	t.Helper()

	const every = 3 * time.Second

	next := time.Now().Add(every)

	world.Eventually(t, "what "+revision.GetName()+" brings", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(revision), revision); err != nil {
			return err
		}

		got, _ := resource.ConditionOf(revision, "RevisionHealthy")
		if got.Status == "True" {
			return nil
		}

		if time.Now().After(next) {
			next = time.Now().Add(every)
			name := revision.GetLabels()["pkg.crossplane.io/package"]

			if err := c.touch(ctx, revision, client.MatchingLabels{"pkg.crossplane.io/package": name}); err != nil {
				return err
			}
		}

		return fmt.Errorf("%v: %w", resource.Map(revision.Object, "status")["conditions"], world.ErrOther)
	})
}

// touch changes all objects of a kind with some labels.
func (c *cluster) touch(ctx context.Context, like *unstructured.Unstructured, labels client.MatchingLabels) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(like.GetAPIVersion())
	list.SetKind(like.GetKind() + "List")

	if err := c.List(ctx, list, labels); err != nil {
		return err
	}

	for i := range list.Items {
		patch := world.Merge(`{"metadata": {"annotations": {"example.org/touched": "` + time.Now().String() + `"}}}`)
		if err := c.Patch(ctx, &list.Items[i], patch); err != nil {
			return err
		}
	}

	return nil
}

// checkCRDs checks that CRDs are served, and go with what brought them. That of
// the function's input is in its package for tools; Crossplane does not serve it.
func (c *cluster) checkCRDs(t *testing.T, provider *unstructured.Unstructured) {
	t.Helper()

	for _, name := range definitions() {
		crd := prototype("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
		crd.SetName(name)
		c.condition(t, crd, "Established")

		if ref := metav1.GetControllerOf(crd); ref == nil || ref.UID != provider.GetUID() {
			t.Errorf("%s is controlled by %v", crd.GetName(), ref)
		}
	}
}

// deployment is what Crossplane made for a revision.
func (c *cluster) deployment(t *testing.T, revision *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()

	d := &appsv1.Deployment{}

	world.Eventually(t, "a Deployment", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: revision.GetName()}, d)
	})

	return d
}

// want is what a pod template has to say.
type want struct {
	image, account string
	ports          map[string]int32
	args, env      []string
	user           int64
}

func check(t *testing.T, d *appsv1.Deployment, w want) {
	t.Helper()

	pod := d.Spec.Template.Spec
	container := pod.Containers[0]

	// By tag: Crossplane asks for the version that it chose, wherever its registry is.
	if len(pod.Containers) != 1 || container.Image != w.image+":"+oldVersion {
		t.Errorf("%d containers, the first of %s; want one of %s", len(pod.Containers), container.Image, w.image)
	}

	if !slices.Equal(container.Args, w.args) || len(container.Command) != 0 {
		t.Errorf("Arguments %q, command %q", container.Args, container.Command)
	}

	if pod.ServiceAccountName != w.account {
		t.Errorf("Runs as %q, want %q", pod.ServiceAccountName, w.account)
	}

	for name, number := range w.ports {
		if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == name && p.ContainerPort == number }) {
			t.Errorf("Ports %+v, want %s %d among them", container.Ports, name, number)
		}
	}

	for _, name := range w.env {
		if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
			t.Errorf("Environment %+v, want %s in it", container.Env, name)
		}
	}

	s := container.SecurityContext
	if s == nil || !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || *s.Privileged || *s.RunAsUser != w.user {
		t.Errorf("Security context %+v", s)
	}
}

func (c *cluster) checkManager(t *testing.T, mirror string, d *appsv1.Deployment) {
	t.Helper()

	check(t, d, want{
		image: mirror + "/provider-kausality", account: "kausality-manager", user: 65532, args: []string{settle},
		ports: map[string]int32{"webhook": 9443, "metrics": 8080},
		env:   []string{"POD_NAMESPACE", "PROVIDER_NAME", "TLS_SERVER_CERTS_DIR"},
	})

	container := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 2 || container.ReadinessProbe.HTTPGet.Path != "/readyz" || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("%d replicas, container %+v", *d.Spec.Replicas, container)
	}

	apart := d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
	for label, value := range apart.PodAffinityTerm.LabelSelector.MatchLabels {
		if got := d.Spec.Template.Labels[label]; got != value {
			t.Errorf("Replicas keep apart from pods with %s=%s, and have %q", label, value, got)
		}
	}
}

func (c *cluster) checkFunction(t *testing.T, mirror string, d *appsv1.Deployment) {
	t.Helper()

	check(t, d, want{
		image: mirror + "/function-kausality", account: d.Name, user: 2000,
		ports: map[string]int32{"grpc": 9443, "metrics": 8080},
		env:   []string{"TLS_SERVER_CERTS_DIR"},
	})
}

// checkRights checks what Crossplane's RBAC manager gives the manager: what our
// packages cannot bring and install.yaml has to.
func (c *cluster) checkRights(t *testing.T, provider *unstructured.Unstructured) {
	t.Helper()

	role := &rbacv1.ClusterRole{}

	world.Eventually(t, "a ClusterRole", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Name: "crossplane:provider:" + provider.GetName() + ":system"}, role)
	})

	var groups []string
	for _, rule := range role.Rules {
		groups = append(groups, rule.APIGroups...)
	}

	slices.Sort(groups)

	if got := strings.Join(slices.Compact(groups), ","); got != ",coordination.k8s.io,kausality.io" {
		t.Errorf("Rights for groups %q", got)
	}

	binding := &rbacv1.ClusterRoleBinding{}

	world.Eventually(t, "a ClusterRoleBinding", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Name: role.Name}, binding)
	})

	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "kausality-manager" {
		t.Errorf("Bound to %+v", binding.Subjects)
	}
}
