// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// A Kubelet does for the Pods of a namespace what a scheduler and a kubelet do as
// far as the API server sees it, under their names: it binds them to its node,
// says that they are ready, and ends those that are deleted. A Pod without a
// node would be gone as soon as it is deleted, as hardly any is in real life.
type Kubelet struct {
	namespace, node string

	// scheduler and agent are their clients.
	scheduler, agent client.Client

	mu sync.Mutex
	// budget is how many more Pods get ready.
	budget int
	// absent is true while it does nothing.
	absent bool
	// last is what went wrong when it last looked.
	last error
}

// kubeletPeriod is how often it checks for something to do.
const kubeletPeriod = 50 * time.Millisecond

// NewKubelet starts one that lives as long as the test; the namespace may be made
// later. No Pod gets ready before it is allowed to.
func NewKubelet(t *testing.T, s *stack.Stack, namespace string) *Kubelet {
	t.Helper()

	k := &Kubelet{namespace: namespace, node: namespace}
	k.scheduler = Impersonate(t, s, "system:kube-scheduler")
	k.agent = Impersonate(t, s, "system:node:"+k.node, "system:nodes")
	c := Connect(t, s.Config())

	// Without a node there the Pods would be collected as orphans. A node that
	// was never ready takes none with it when it is not heard of.
	objects := []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "kubelet-" + k.node},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + k.node}},
		},
	}
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))

	var wg sync.WaitGroup

	wg.Go(func() { k.run(ctx) })

	t.Cleanup(func() {
		cancel()
		wg.Wait()

		for _, obj := range objects {
			if err := c.Delete(context.WithoutCancel(ctx), obj); err != nil {
				t.Error(err)
			}
		}
	})

	return k
}

// AllPods is more Pods than there ever are.
const AllPods = 1000

// Allow has so many more Pods get ready.
func (k *Kubelet) Allow(pods int) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.budget += pods
}

// AllReady checks that all the Pods there are got ready.
func (k *Kubelet) AllReady(ctx context.Context) error {
	list := &corev1.PodList{}
	if err := k.agent.List(ctx, list, client.InNamespace(k.namespace)); err != nil {
		return err
	}

	for _, pod := range list.Items {
		if !podReady(&pod) {
			return fmt.Errorf("the node's Pod %q is not ready: %w", pod.Name, ErrOther)
		}
	}

	return nil
}

// Hold has none get ready any more.
func (k *Kubelet) Hold() {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.budget = 0
}

// Stop has it do nothing, until it is started again.
func (k *Kubelet) Stop() { k.setAbsent(true) }

// Start has it go on.
func (k *Kubelet) Start() { k.setAbsent(false) }

func (k *Kubelet) setAbsent(absent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.absent = absent
}

func (k *Kubelet) away() bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.absent
}

// take reports whether one more may get ready, and counts it.
func (k *Kubelet) take() bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.budget == 0 {
		return false
	}

	k.budget--

	return true
}

// Err is what went wrong when it last looked.
func (k *Kubelet) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.last
}

func (k *Kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.sync(ctx)

		k.mu.Lock()
		k.last = err
		k.mu.Unlock()

		select {
		case <-ctx.Done():
		case <-time.After(kubeletPeriod):
		}
	}
}

// sync does what there is to do, for the oldest Pods first.
func (k *Kubelet) sync(ctx context.Context) error {
	if k.away() {
		return nil
	}

	list := &corev1.PodList{}
	if err := k.agent.List(ctx, list, client.InNamespace(k.namespace)); err != nil {
		return err
	}

	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })

	for i := range list.Items {
		err := k.care(ctx, &list.Items[i])
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the node's Pod %q: %w", list.Items[i].Name, err)
		}
	}

	return nil
}

// care does the next thing that one Pod needs.
func (k *Kubelet) care(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName == "":
		return k.scheduler.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: k.node},
		})
	case pod.DeletionTimestamp != nil:
		return k.agent.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case !podReady(pod) && k.take():
		err := k.Report(ctx, pod, corev1.ConditionTrue)
		if err != nil {
			k.Allow(1)
		}

		return err
	default:
		return nil
	}
}

// Report writes whether a Pod is ready.
func (k *Kubelet) Report(ctx context.Context, pod *corev1.Pod, status corev1.ConditionStatus) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = nil

	for _, typ := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: typ, Status: status, LastTransitionTime: metav1.Now(),
		})
	}

	return k.agent.Status().Update(ctx, pod)
}

// podReady reports whether a Pod is ready.
func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
