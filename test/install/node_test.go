// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// node runs the pods of packages, as a kubelet does. A process runs until it is
// asked to stop, also when its pod is deleted: so it is reported what happens while old
// and new pods run side by side.
type node struct {
	mu   sync.Mutex
	pods []*pod
}

// pod is one that runs.
type pod struct {
	labels  map[string]string
	process *stack.Process
	// address is where it serves what its Service is for.
	address string
}

// selected returns a pod that runs and is of a Service, the newest first.
func (n *node) selected(service *corev1.Service) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()

	for _, p := range slices.Backward(n.pods) {
		matches := len(service.Spec.Selector) > 0 && p.process.PID() != 0
		for key, value := range service.Spec.Selector {
			matches = matches && p.labels[key] == value
		}

		if matches {
			return p
		}
	}

	return nil
}

// run starts the pods of a revision's Deployment, and reports that they are ready
// as soon as they are.
func (n *node) run(t *testing.T, c *cluster, revision *unstructured.Unstructured) {
	t.Helper()

	d := c.deployment(t, revision)

	for i := range *d.Spec.Replicas {
		n.start(t, c, d, fmt.Sprintf("%s-%s-%d", d.Name, d.UID[:4], i))
	}

	c.ready(t, d)
}

// start starts one pod of a Deployment. All pods share one network here, so
// addresses are given, and a kubeconfig in place of the token; all else is as the
// pod template says.
func (n *node) start(t *testing.T, c *cluster, d *appsv1.Deployment, name string) {
	t.Helper()

	template := &d.Spec.Template
	container := c.container(t, template)
	container.Name = name
	p := &pod{labels: template.Labels, address: free(t)}

	if template.Labels["pkg.crossplane.io/function"] != "" {
		container.Args = append(container.Args, "--address="+p.address, "--metrics-address=127.0.0.1:0")
		container.Ready = stack.Probe{Address: p.address}
	} else {
		health := free(t)
		container.Args = append(container.Args, "--kubeconfig="+kubeconfig(t, template.Spec.ServiceAccountName),
			"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address="+health, "--webhook-bind-address="+p.address)
		container.Ready = stack.Probe{URL: "http://" + health + "/readyz"}
	}

	var err error
	if p.process, err = running.Run(t.Context(), container); err != nil {
		t.Fatal(err)
	}

	n.mu.Lock()
	n.pods = append(n.pods, p)
	n.mu.Unlock()
}

// stop ends the processes of a revision's pods.
func (n *node) stop(t *testing.T, revision string) {
	t.Helper()

	n.mu.Lock()
	defer n.mu.Unlock()

	stopped := 0

	for _, p := range n.pods {
		if p.labels["pkg.crossplane.io/revision"] != revision || p.process.PID() == 0 {
			continue
		}

		stopped++

		if err := p.process.Stop(); err != nil {
			t.Fatal(err)
		}
	}

	if stopped == 0 {
		t.Fatalf("No pod of %s runs", revision)
	}
}

func kubeconfig(t *testing.T, account string) string {
	t.Helper()

	path, err := running.Kubeconfig(t.Context(), stack.CrossplaneNamespace, account)
	if err != nil {
		t.Fatal(err)
	}

	return path
}

// ready reports that all pods of a Deployment are ready, and waits until it is
// available by that.
func (c *cluster) ready(t *testing.T, d *appsv1.Deployment) {
	t.Helper()

	world.Eventually(t, "the availability of "+d.Name, func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			return err
		}

		for i := range list.Items {
			if err := c.report(ctx, &list.Items[i]); err != nil {
				return err
			}
		}

		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}

		if d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("%d pods are available: %w", d.Status.AvailableReplicas, world.ErrOther)
		}

		return nil
	})
}

// report says that a pod is ready.
func (c *cluster) report(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodRunning {
		return nil
	}

	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = nil

	for _, typ := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}

	return c.Status().Update(ctx, pod)
}
