// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// secretName is of the Secret with the webhook's certificate, which is made here
// as somebody in a cluster would.
const secretName = "mounted"

// installed is one release of the chart as it is in the cluster: its objects, and
// the one pod of its Deployment that runs.
type installed struct {
	objects []*unstructured.Unstructured
	process *stack.Process
}

// install applies what the chart makes, as helm install and helm upgrade do, and
// starts a pod of it as a kubelet does: with the arguments and environment of the
// Deployment, the mounted Secret, and the token of its service account.
func install(t *testing.T, pod string) *installed {
	t.Helper()

	ports, err := stack.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}

	text, err := render(t, fmt.Sprintf(`
webhook: {port: %d, url: %q, certificate: {from: secret, secretName: %s}}
metrics: {port: %d}
health: {port: %d}
listen: 127.0.0.1
gates: {settle: 1s}
leaderElection: {leaseDuration: 6s, renewDeadline: 5s, retryPeriod: 500ms}
env: [{name: GOGC, value: "80"}]
`, ports[0], running.ServiceURL(), secretName, ports[1], ports[2]))
	if err != nil {
		t.Fatal(err)
	}

	out := &installed{objects: parse(t, text)}
	c := connect(t, running.Config(), nil)

	for _, u := range out.objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			t.Fatalf("%s %q: %v", u.GetKind(), u.GetName(), err)
		}
	}

	spec := deployment(t, out.objects, "").Spec.Template.Spec

	if out.process, err = running.RunInstalled(t.Context(), stack.Installed{
		Name: pod, Namespace: home, ServiceAccount: spec.ServiceAccountName,
		Args: mounted(t, spec), Env: environment(t, spec.Containers[0]), WebhookPort: ports[0], HealthPort: ports[2],
	}); err != nil {
		t.Fatal(err)
	}

	if err := out.process.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}

	return out
}

// mounted writes the Secrets that a pod mounts, and returns its arguments with
// the directories they are in.
func mounted(t *testing.T, spec corev1.PodSpec) []string {
	t.Helper()

	args := slices.Clone(spec.Containers[0].Args)

	for _, mount := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		secret := &corev1.Secret{}

		if err := connect(t, running.Config(), nil).Get(t.Context(),
			client.ObjectKey{Namespace: home, Name: spec.Volumes[i].Secret.SecretName}, secret); err != nil {
			t.Fatal(err)
		}

		dir := t.TempDir()

		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}

		for i := range args {
			args[i] = strings.Replace(args[i], mount.MountPath, dir, 1)
		}
	}

	return args
}

// environment is that of a container.
func environment(t *testing.T, c corev1.Container) []string {
	t.Helper()

	out := make([]string, 0, len(c.Env))

	for _, e := range c.Env {
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil || e.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
				t.Fatalf("environment variable %q is of %+v", e.Name, e.ValueFrom)
			}

			e.Value = home
		}

		out = append(out, e.Name+"="+e.Value)
	}

	return out
}

// remove deletes the release, as helm uninstall does: all but the CRDs.
func (i *installed) remove(t *testing.T) {
	t.Helper()

	if err := i.process.Stop(); err != nil {
		t.Fatal(err)
	}

	c := connect(t, running.Config(), nil)

	for _, u := range i.objects {
		if err := client.IgnoreNotFound(c.Delete(t.Context(), u.DeepCopy())); err != nil {
			t.Fatal(err)
		}
	}
}

// makeCertificate makes the Secret with the webhook's certificate and its CA.
func makeCertificate(t *testing.T) {
	t.Helper()

	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	caKey, problem1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, problem2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)

	if err := errors.Join(problem1, problem2); err != nil {
		t.Fatal(err)
	}

	caRaw, problem1 := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	raw, problem2 := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	keyRaw, problem3 := x509.MarshalPKCS8PrivateKey(key)

	if err := errors.Join(problem1, problem2, problem3); err != nil {
		t.Fatal(err)
	}

	data := map[string][]byte{}
	for name, block := range map[string]*pem.Block{
		"ca.crt":                {Type: "CERTIFICATE", Bytes: caRaw},
		corev1.TLSCertKey:       {Type: "CERTIFICATE", Bytes: raw},
		corev1.TLSPrivateKeyKey: {Type: "PRIVATE KEY", Bytes: keyRaw},
	} {
		data[name] = pem.EncodeToMemory(block)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: secretName}, Type: corev1.SecretTypeTLS, Data: maps.Clone(data)}
	if err := connect(t, running.Config(), nil).Create(t.Context(), secret); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
