// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// deployment reads the Deployment of the chart.
func deployment(t *testing.T, list []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()

	u := find(list, "Deployment", "kausality-manager")
	if u == nil {
		t.Fatal("there is no Deployment")
	}

	out := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true); err != nil {
		t.Fatal(err)
	}

	return out
}

func TestTheChartMakesOfValuesWhatTheySay(t *testing.T) {
	t.Parallel()

	for name, tc := range sets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := render(t, tc.values)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}

			list := world.Parse(t, text)

			for _, want := range tc.want {
				if kind, name, _ := strings.Cut(want, "/"); find(list, kind, name) == nil {
					t.Errorf("%s\nthere is no %s", tc.reason, want)
				}
			}

			for _, not := range tc.without {
				if kind, name, _ := strings.Cut(not, "/"); find(list, kind, name) != nil {
					t.Errorf("%s\nthere is a %s", tc.reason, not)
				}
			}

			d := deployment(t, list)

			for _, arg := range tc.args {
				if !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, arg) {
					t.Errorf("%s\n%q is missing in %q", tc.reason, arg, d.Spec.Template.Spec.Containers[0].Args)
				}
			}

			restricted(t, d.Spec.Template.Spec)
		})
	}
}

// TestAManagerThatIsNotReadyPreventsNoNodeFromBeingDrained reads the manager's budget.
// Without that, one that cannot start would keep the nodes of all its replicas.
func TestAManagerThatIsNotReadyPreventsNoNodeFromBeingDrained(t *testing.T) {
	t.Parallel()

	text, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}

	u := find(world.Parse(t, text), "PodDisruptionBudget", "kausality-manager")
	if u == nil {
		t.Fatal("there is no PodDisruptionBudget")
	}

	if how := resource.String(u.Object, "spec", "unhealthyPodEvictionPolicy"); how != "AlwaysAllow" {
		t.Errorf("unhealthyPodEvictionPolicy is %q", how)
	}
}

// restricted checks what the Pod Security Standard "restricted" asks for, and a
// root file system that cannot be written.
func restricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()

	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}

	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil ||
			!*s.ReadOnlyRootFilesystem || s.Privileged == nil || *s.Privileged || s.Capabilities == nil ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("container: %+v", s)
		}

		if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("probes %+v, %+v, resources %+v", c.LivenessProbe, c.ReadinessProbe, c.Resources)
		}
	}
}

func TestTheSchemaRefusesValuesThatCannotBeMeant(t *testing.T) {
	t.Parallel()

	for name, tc := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := render(t, tc.values)
			if err == nil {
				t.Fatalf("%s is rendered:\n%s", tc.values, text)
			}

			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v\nwant %q", tc.values, err, want)
				}
			}
		})
	}
}

func TestHelmFindsNothingWrong(t *testing.T) {
	t.Parallel()

	if _, err := helm(t, "lint", "--strict", "--kube-version", kubeVersion, chart); err != nil {
		t.Error(err)
	}
}

// TestTheChartCarriesWhatIsGenerated compares rules and CRDs with those that are
// generated from the code.
func TestTheChartCarriesWhatIsGenerated(t *testing.T) {
	t.Parallel()

	text, err := render(t, "", "--include-crds")
	if err != nil {
		t.Fatal(err)
	}

	list := world.Parse(t, text)
	checked := 0

	for _, dir := range []string{"rbac", "crds"} {
		files, err := filepath.Glob(filepath.Join(root, "package", dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}

		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			for _, want := range world.Parse(t, raw) {
				if !slices.Contains([]string{"ClusterRole", "Role", "CustomResourceDefinition"}, want.GetKind()) {
					continue
				}

				checked++

				got := find(list, want.GetKind(), want.GetName())
				if got == nil {
					t.Errorf("%s %q is missing", want.GetKind(), want.GetName())

					continue
				}

				for _, field := range []string{"rules", "spec"} {
					if diff := cmp.Diff(want.Object[field], got.Object[field]); diff != "" {
						t.Errorf("%s %q: -generated, +chart:\n%s", want.GetKind(), want.GetName(), diff)
					}
				}

				if got.GetNamespace() != want.GetNamespace() || resource.Name(got) == "" {
					t.Errorf("%s %q is in %q", want.GetKind(), want.GetName(), got.GetNamespace())
				}
			}
		}
	}

	if checked < 6 {
		t.Errorf("%d are generated, want 6 or more", checked)
	}
}

func TestTheChartsImageIsThatOfItsVersion(t *testing.T) {
	t.Parallel()

	text, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}

	chart, err := os.ReadFile(filepath.Join("..", "..", "package", "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	_, version, _ := strings.Cut(string(chart), "\nappVersion: ")
	version, _, _ = strings.Cut(version, "\n")

	// Tags of what make package builds begin with v.
	want := "xpkg.crossplane.io/kausality-io/kausality-manager:v" + version
	if got := deployment(t, world.Parse(t, text)).Spec.Template.Spec.Containers[0].Image; got != want {
		t.Errorf("The image is %s, want %s", got, want)
	}
}
