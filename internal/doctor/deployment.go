// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Names that show a manager's container, image, or package.
const (
	nameManager  = "kausality-manager"
	nameProvider = "provider-kausality"
)

// Where Crossplane says which Provider it runs.
const (
	labelProvider = "pkg.crossplane.io/provider"
	envProvider   = "PROVIDER_NAME"
)

// deployed takes what a Deployment says, if it runs a manager that serves the
// webhook: namespace, version, service account, Secret and flags. The Lease of the webhook has the same name everywhere.
func (m *Manager) deployed(u *unstructured.Unstructured) {
	c := ManagerContainer(u)
	if c == nil {
		return
	}

	flags := arguments(c)
	if flags["no-enable-webhook"] == flagSet {
		return
	}

	m.By, m.Namespace, m.Version = name(u), cmp.Or(flags["namespace"], u.GetNamespace()), Tag(resource.String(c, "image"))
	m.ServiceAccount = cmp.Or(flags["service-account"],
		resource.String(u.Object, "spec", "template", "spec", "serviceAccountName"), m.ServiceAccount)
	m.Secret = cmp.Or(flags["webhook-secret"], m.Secret)
	m.Elected = flags["leader-elect"] == flagSet || environment(u, c, envProvider) != ""

	if d, err := time.ParseDuration(flags["max-open"]); err == nil {
		m.MaxOpen = d
	}

	if dir := cmp.Or(flags["webhook-cert-dir"], environment(u, c, "TLS_SERVER_CERTS_DIR")); dir != "" {
		m.Secret, m.Mounted = mounted(u, c, dir), true
	}
}

// ManagerContainer is the container of a Deployment that is a manager; nil for
// none. Crossplane calls that of a Provider package-runtime, and names the
// Provider in a label of the pods.
func ManagerContainer(deployment *unstructured.Unstructured) map[string]any {
	list := maps(deployment.Object, "spec", "template", "spec", "containers")

	for _, c := range list {
		image := resource.String(c, "image")
		if resource.String(c, "name") == nameManager || strings.Contains(image, nameManager) || strings.Contains(image, nameProvider) {
			return c
		}
	}

	ours := deployment.GetLabels()["app.kubernetes.io/name"] == nameManager ||
		strings.Contains(podLabel(deployment, labelProvider), nameProvider)
	if ours && len(list) > 0 {
		return list[0]
	}

	return nil
}

func podLabel(deployment *unstructured.Unstructured, key string) string {
	return resource.String(deployment.Object, "spec", "template", "metadata", "labels", key)
}

// Tag is an image's tag, or else its digest.
func Tag(image string) string {
	named, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(named, ':'); i > strings.LastIndexByte(named, '/') {
		return named[i+1:]
	}

	return digest
}

// flagSet is the value of a flag that has none.
const flagSet = "true"

// arguments are the flags of a container, without dashes.
func arguments(container map[string]any) map[string]string {
	out := map[string]string{}
	last := ""

	for _, arg := range slices.Concat(resource.Strings(container, "command"), resource.Strings(container, "args")) {
		text, flag := strings.CutPrefix(arg, "--")
		if !flag {
			if last != "" {
				out[last] = arg
			}

			continue
		}

		key, value, given := strings.Cut(text, "=")
		last = key

		if given {
			last = ""
		} else {
			value = flagSet
		}

		out[key] = value
	}

	return out
}

// environment is the value of a container's environment variable, also where it
// is that of a label of the pod.
func environment(deployment *unstructured.Unstructured, container map[string]any, key string) string {
	for _, e := range maps(container, "env") {
		if resource.String(e, "name") != key {
			continue
		}

		ref := resource.String(e, "valueFrom", "fieldRef", "fieldPath")
		if label, ok := strings.CutPrefix(ref, "metadata.labels['"); ok {
			return podLabel(deployment, strings.TrimSuffix(label, "']"))
		}

		return resource.String(e, "value")
	}

	return ""
}

// mounted is the secret that a container has at a path; empty for none.
func mounted(deployment *unstructured.Unstructured, container map[string]any, dir string) string {
	for _, at := range maps(container, "volumeMounts") {
		if path.Clean(resource.String(at, "mountPath")) != path.Clean(dir) {
			continue
		}

		for _, v := range maps(deployment.Object, "spec", "template", "spec", "volumes") {
			if resource.String(v, "name") == resource.String(at, "name") {
				return resource.String(v, "secret", "secretName")
			}
		}
	}

	return ""
}
