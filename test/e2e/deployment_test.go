// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Users that the real controllers are.
const (
	deploymentController = "system:serviceaccount:kube-system:deployment-controller"
	replicaSetController = "system:serviceaccount:kube-system:replicaset-controller"
	podAutoscaler        = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// Names of people, as traces have them.
const hansName = "hans@example.com"

// anna edits what she may not.
const anna = "anna"

// annotationRevision is what the Deployment controller counts revisions by.
const annotationRevision = "deployment.kubernetes.io/revision"

// deployment is one in a namespace with a kubelet of its own, down to its Pods.
type deployment struct {
	cluster

	namespace, name string

	node *world.Kubelet
}

// newDeployment makes a namespace that the policies of rollout.yaml are about.
// It does not make the Deployment itself.
func newDeployment(t *testing.T, namespace, name string) deployment {
	t.Helper()

	d := deployment{cluster: newCluster(t, "Deployment", name), namespace: namespace, name: name}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"kausality-test": "rollout"}}}

	if err := d.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = d.Delete(context.WithoutCancel(t.Context()), ns) })

	d.node = world.NewKubelet(t, running, namespace)

	return d
}

// beside is another Deployment of the same namespace.
func (d deployment) beside(name string) deployment {
	d.name = name

	return d
}

// play plays steps. Those after one that failed are played too, but for the
// first, without which there is nothing.
func (d deployment) play(t *testing.T, steps []scenario.Step) {
	t.Helper()

	for i, step := range steps {
		if !t.Run(step.Title, func(t *testing.T) {
			if err := step.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, d.dump(t.Context()))
			}
		}) && i == 0 {
			return
		}
	}
}

// dump says how everything in the namespace is, and what happened there.
func (d deployment) dump(ctx context.Context) string {
	out, err := d.kubectl(ctx, admin, "get", "deployments,replicasets,pods", "--output=wide")
	more, err2 := d.kubectl(ctx, admin, "describe", "deployments,replicasets")

	if err := errors.Join(err, err2, d.node.Err()); err != nil {
		more += err.Error()
	}

	return out + more
}

// kubectl runs kubectl in the namespace, and returns what it prints, warnings too.
func (d deployment) kubectl(ctx context.Context, user string, args ...string) (string, error) {
	config := filepath.Join(running.Dir(), "kubeconfig")
	if user != admin {
		config = filepath.Join(running.Dir(), "users", user+".kubeconfig")
	}

	cmd := exec.CommandContext(ctx, running.Tools().Binary("kubectl"), append([]string{"--namespace=" + d.namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config)

	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out

	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cannot run kubectl %s as %q: %w: %s", strings.Join(args, " "), user, err, out.String())
	}

	return out.String(), nil
}

// impersonate returns a client that is somebody else.
func impersonate(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()

	if strings.HasPrefix(user, "system:serviceaccount:") {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	}

	return world.Impersonate(t, running, user, groups...)
}

// manifest of the Deployment.
func (d deployment) manifest(replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: %[3]d
  revisionHistoryLimit: 2
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: "registry.example.org/app:v1"}
`, d.name, d.namespace, replicas)
}

// image of a version of the app.
func image(version string) string { return "registry.example.org/app:" + version }

// live reads the Deployment.
func (d deployment) live(ctx context.Context) (*appsv1.Deployment, error) {
	obj := &appsv1.Deployment{}

	return obj, d.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.name}, obj)
}

// replicaSets reads its ReplicaSets, the oldest revision first.
func (d deployment) replicaSets(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	list := &appsv1.ReplicaSetList{}
	if err := d.List(ctx, list, client.InNamespace(d.namespace), client.MatchingLabels{"app": d.name}); err != nil {
		return nil, err
	}

	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int {
		x, _ := strconv.Atoi(a.Annotations[annotationRevision])
		y, _ := strconv.Atoi(b.Annotations[annotationRevision])

		return cmp.Compare(x, y)
	})

	return list.Items, nil
}

// newest is the ReplicaSet of its latest revision.
func (d deployment) newest(ctx context.Context) (*appsv1.ReplicaSet, error) {
	list, err := d.replicaSets(ctx)
	if err != nil {
		return nil, err
	}

	if len(list) == 0 {
		return nil, fmt.Errorf("Deployment %q has no ReplicaSet: %w", d.name, world.ErrOther)
	}

	return &list[len(list)-1], nil
}

// pods reads its Pods.
func (d deployment) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := d.List(ctx, list, client.InNamespace(d.namespace), client.MatchingLabels{"app": d.name})

	return list.Items, err
}

// traceOf returns the entry of an object's trace about a field; the newest for
// none.
func traceOf(obj client.Object, field string) (v1alpha1.TraceEntry, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAnnotations(obj.GetAnnotations())

	entries, err := allowance.ParseTrace(u)
	if err != nil {
		return v1alpha1.TraceEntry{}, err
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return field == "" || e.Field == field })
	if i < 0 {
		return v1alpha1.TraceEntry{}, fmt.Errorf("%q has no trace of %q: %w", obj.GetName(), field, world.ErrOther)
	}

	return entries[i], nil
}
