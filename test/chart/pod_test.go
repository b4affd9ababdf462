// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

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
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
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
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// secretName is of the Secret with the webhook's certificate, which is made here
// as somebody in a cluster would.
const secretName = "mounted"

// installed is a revision of the release as it is in the cluster: its objects,
// and the one pod of its Deployment that runs.
type installed struct {
	objects []*unstructured.Unstructured
	version string
	metrics string
	// log of decisions.
	log     string
	process *stack.Process
}

// install installs the chart with a version of the manager, or upgrades to that,
// and starts a pod of it.
func install(t *testing.T, version, pod string) *installed {
	t.Helper()

	ports, err := stack.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}

	onCluster(t, "upgrade", "--install", release, chart, "--values", valuesFile(t, fmt.Sprintf(`
image: {tag: %s}
webhook: {port: %d, url: %q, certificate: {from: secret, secretName: %s}}
metrics: {port: %d}
health: {port: %d}
listen: 127.0.0.1
gates: {settle: 1s}
decisionLog: {enabled: true}
rbac: {governed: ["*.sql.example.org"]}
leaderElection: {leaseDuration: 6s, renewDeadline: 5s, retryPeriod: 500ms}
env: [{name: GOGC, value: "80"}]
`, version, ports[0], running.ServiceURL(), secretName, ports[1], ports[2])))

	return started(t, pod)
}

// rollBack goes back to a revision of the release, and starts a pod of it.
func rollBack(t *testing.T, revision, pod string) *installed {
	t.Helper()

	onCluster(t, "rollback", release, revision)

	return started(t, pod)
}

// onCluster runs Helm on the cluster.
func onCluster(t *testing.T, args ...string) []byte {
	t.Helper()

	out, err := helm(t, append(args, "--namespace", home, "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig"))...)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// started starts a pod of the Deployment there is, as a kubelet does: of the
// version that the image has, with the arguments and environment of the Deployment,
// the mounted Secret, and the token of its service account.
func started(t *testing.T, pod string) *installed {
	t.Helper()

	// There is no kube-controller-manager.
	if err := running.Aggregate(t.Context()); err != nil {
		t.Fatal(err)
	}

	out := &installed{objects: world.Parse(t, onCluster(t, "get", "manifest", release))}
	live := find(out.objects, "Deployment", "kausality-manager")

	if err := world.Connect(t, running.Config()).Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}

	spec := deployment(t, []*unstructured.Unstructured{live}).Spec.Template.Spec
	container := spec.Containers[0]
	ports := map[string]int{}

	for _, p := range container.Ports {
		ports[p.Name] = int(p.ContainerPort)
	}

	_, out.version, _ = strings.Cut(container.Image, ":")
	out.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports["metrics"])

	args := mounted(t, spec)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "$(POD_NAME)", pod) // As a kubelet does.

		if file, ok := strings.CutPrefix(args[i], "--decision-log="); ok {
			out.log = file
		}
	}

	var err error
	if out.process, err = running.RunInstalled(t.Context(), stack.Installed{
		Name: pod, Version: out.version, Namespace: home, ServiceAccount: spec.ServiceAccountName,
		Args: args, Env: environment(t, container, pod), WebhookPort: ports["webhook"], HealthPort: ports["health"],
	}); err != nil {
		t.Fatal(err)
	}

	if err := out.process.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}

	return out
}

// runs checks which version of the manager runs, as that itself says.
func (i *installed) runs(t *testing.T, version string) {
	t.Helper()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.metrics, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	body, err := io.ReadAll(rsp.Body)
	if err := errors.Join(err, rsp.Body.Close()); err != nil {
		t.Fatal(err)
	}

	if want := fmt.Sprintf("kausality_build_info{version=%q} 1", version); !strings.Contains(string(body), want) {
		t.Errorf("its metrics do not have %s", want)
	}
}

// mounted writes the Secrets that a pod mounts, makes its other volumes, and returns its
// arguments with the directories they are in.
func mounted(t *testing.T, spec corev1.PodSpec) []string {
	t.Helper()

	args := slices.Clone(spec.Containers[0].Args)

	for _, mount := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		secret := &corev1.Secret{}

		if volume := spec.Volumes[i]; volume.EmptyDir == nil {
			if err := world.Connect(t, running.Config()).Get(t.Context(),
				client.ObjectKey{Namespace: home, Name: volume.Secret.SecretName}, secret); err != nil {
				t.Fatal(err)
			}
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

// environment is that of a container of a pod.
func environment(t *testing.T, c corev1.Container, pod string) []string {
	t.Helper()

	out := make([]string, 0, len(c.Env))

	for _, e := range c.Env {
		if e.ValueFrom != nil {
			known := map[string]string{"metadata.namespace": home, "metadata.name": pod}

			if e.ValueFrom.FieldRef == nil || known[e.ValueFrom.FieldRef.FieldPath] == "" {
				t.Fatalf("environment variable %q is of %+v", e.Name, e.ValueFrom)
			}

			e.Value = known[e.ValueFrom.FieldRef.FieldPath]
		}

		out = append(out, e.Name+"="+e.Value)
	}

	return out
}

// remove uninstalls the release.
func (i *installed) remove(t *testing.T) {
	t.Helper()

	if err := i.process.Stop(); err != nil {
		t.Fatal(err)
	}

	onCluster(t, "uninstall", release)
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
	if err := world.Connect(t, running.Config()).Create(t.Context(), secret); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
