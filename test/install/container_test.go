// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// container is what a kubelet would run of a pod template: the program of the
// image with the arguments, the environment and, from the Secrets, the files that
// it says. Paths of files begin in a directory of the test's instead of at /.
func (c *cluster) container(t *testing.T, template *corev1.PodTemplateSpec) stack.Container {
	t.Helper()

	spec := template.Spec.Containers[0]
	root := t.TempDir()

	mounts := map[string]string{}

	for _, m := range spec.VolumeMounts {
		mounts[m.MountPath] = filepath.Join(root, m.MountPath)
		c.mount(t, template, m.Name, mounts[m.MountPath])
	}

	env := map[string]string{}

	for _, e := range spec.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = field(t, template, e.ValueFrom.FieldRef.FieldPath)
		}

		for other, is := range env {
			value = strings.ReplaceAll(value, "$("+other+")", is)
		}

		if at, ok := mounts[value]; ok {
			value = at
		}

		env[e.Name] = value
	}

	if c.programs[spec.Image] == "" {
		c.programs[spec.Image] = unpacked(t, spec.Image)
	}

	return stack.Container{
		Name: template.Labels["pkg.crossplane.io/revision"], Path: c.programs[spec.Image], Args: slices.Clone(spec.Args), Env: env,
	}
}

// mount writes the files of a volume.
func (c *cluster) mount(t *testing.T, template *corev1.PodTemplateSpec, volume, dir string) {
	t.Helper()

	for _, v := range template.Spec.Volumes {
		if v.Name != volume {
			continue
		}

		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: v.Secret.SecretName}, secret); err != nil {
			t.Fatal(err)
		}

		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}

		for _, item := range v.Secret.Items {
			if err := os.WriteFile(filepath.Join(dir, item.Path), secret.Data[item.Key], 0o600); err != nil {
				t.Fatal(err)
			}
		}

		return
	}

	t.Fatalf("There is no volume %q", volume)
}

// field is what the downward API says of a pod.
func field(t *testing.T, template *corev1.PodTemplateSpec, path string) string {
	t.Helper()

	if path == "metadata.namespace" {
		return stack.CrossplaneNamespace
	}

	for label, value := range template.Labels {
		if path == fmt.Sprintf("metadata.labels['%s']", label) {
			return value
		}
	}

	t.Fatalf("A pod has no %s", path)

	return ""
}
