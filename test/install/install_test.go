// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// home is where our packages will be; then what Crossplane calls those that
// it installs because a Configuration depends on them.
const (
	home         = "xpkg.crossplane.io/kausality-io"
	providerName = "kausality-io-provider-kausality"
	functionName = "kausality-io-function-kausality"
)

// rewritten has Crossplane look for our packages in a mirror, as it does where it
// cannot reach the internet.
const rewritten = `{
	"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": "mirror"},
	"spec": {"matchImages": [{"prefix": %q}], "rewriteImage": {"prefix": %q}}
}`

func TestThePackageManagerInstallsTheConfiguration(t *testing.T) { //nolint:paralleltest // Steps build on each other.
	c := connect(t, running.Config(), nil)
	mirror, dist := published(t)

	// As install.yaml says, a mirror's prefix is added.
	prefix := "- prefix: "
	install := string(read(t, filepath.Join(dist, "install.yaml")))
	install = strings.Replace(install, prefix+home, prefix+mirror+"/provider-kausality\n  "+prefix+home, 1)

	c.apply(t, fmt.Appendf(nil, rewritten, home, mirror))
	c.apply(t, []byte(install))

	c.condition(t, pkg("Configuration", "configuration-kausality"), "Healthy", "True")

	provider := c.installed(t, "Provider", providerName)
	function := c.installed(t, "Function", functionName)

	t.Run("Its CRDs are served", func(t *testing.T) { c.checkCRDs(t, provider) })
	t.Run("The Provider runs the manager", func(t *testing.T) { c.checkManager(t, mirror, c.deployment(t, provider)) })
	t.Run("The Function runs the function", func(t *testing.T) { c.checkFunction(t, mirror, c.deployment(t, function)) })
	t.Run("Crossplane gives the manager its CRDs only", func(t *testing.T) { c.checkRights(t, provider) })
	t.Run("The function serves", func(t *testing.T) { c.serveFunction(t, function) })
	t.Run("The manager enforces", func(t *testing.T) { c.serveManager(t, provider) })
	t.Run("The doctor finds the manager", func(t *testing.T) { checkDoctor(t, version) })
}

func pkg(kind, name string) *unstructured.Unstructured {
	u := prototype("pkg.crossplane.io", "v1", kind)
	u.SetName(name)

	return u
}

// installed waits until a package is, as far as it can be: its runtime cannot be
// healthy, for a Deployment is available when its pods are ready, and that only a
// kubelet says. It returns the revision.
func (c *cluster) installed(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()

	c.condition(t, pkg(kind, name), "Installed", "True")

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(pkg(kind+"RevisionList", "").GroupVersionKind())

	if err := c.List(t.Context(), list, client.MatchingLabels{"pkg.crossplane.io/package": name}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d revisions: %v", len(list.Items), err)
	}

	revision := c.condition(t, &list.Items[0], "RevisionHealthy", "True")
	c.condition(t, revision, "RuntimeHealthy", "False")

	return revision
}

// checkCRDs checks that CRDs are served, and go with what brought them. That of
// the function's input is in its package for tools; Crossplane does not serve it.
func (c *cluster) checkCRDs(t *testing.T, provider *unstructured.Unstructured) {
	t.Helper()

	for _, name := range []string{"allowancepolicies", "enforcements", "upgradeallowances"} {
		crd := prototype("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
		crd.SetName(name + ".kausality.io")
		c.condition(t, crd, "Established", "True")

		if ref := metav1.GetControllerOf(crd); ref == nil || ref.UID != provider.GetUID() {
			t.Errorf("%s is controlled by %v", crd.GetName(), ref)
		}
	}
}

// deployment is what Crossplane made for a revision.
func (c *cluster) deployment(t *testing.T, revision *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()

	d := &appsv1.Deployment{}

	eventually(t, "a Deployment", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: revision.GetName()}, d)
	})

	return d
}

// want is what a pod template has to say.
type want struct {
	image, account string
	ports          map[string]int32
	env            []string
	user           int64
}

func check(t *testing.T, d *appsv1.Deployment, w want) {
	t.Helper()

	pod := d.Spec.Template.Spec
	container := pod.Containers[0]

	// By tag: Crossplane asks for the version that it chose, wherever its registry is.
	if len(pod.Containers) != 1 || container.Image != w.image+":"+version {
		t.Errorf("%d containers, the first of %s; want one of %s", len(pod.Containers), container.Image, w.image)
	}

	if len(container.Args)+len(container.Command) != 0 {
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
		image: mirror + "/provider-kausality", account: "kausality-manager", user: 65532,
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

	eventually(t, "a ClusterRole", func(ctx context.Context) error {
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

	eventually(t, "a ClusterRoleBinding", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Name: role.Name}, binding)
	})

	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "kausality-manager" {
		t.Errorf("Bound to %+v", binding.Subjects)
	}
}
