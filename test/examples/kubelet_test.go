// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// kubelet does for the Pods of a namespace what a scheduler and a kubelet do, as
// far as the API server sees it.
type kubelet struct {
	namespace string
	// scheduler and agent are their clients.
	scheduler, agent client.Client
}

// newKubelet starts one that lives as long as the test.
func newKubelet(t *testing.T, namespace string) {
	t.Helper()

	k := kubelet{
		namespace: namespace,
		scheduler: as(t, "system:kube-scheduler"),
		agent:     as(t, "system:node:"+namespace, "system:nodes"),
	}

	// Without a node there the Pods would be collected as orphans.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := k.scheduler.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))

	var (
		wg   sync.WaitGroup
		last error
	)

	wg.Go(func() {
		for ctx.Err() == nil {
			if err := k.sync(ctx); ctx.Err() == nil {
				last = err
			}

			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})

	t.Cleanup(func() {
		cancel()
		wg.Wait()

		if last != nil {
			t.Logf("the node of %q: %v", namespace, last)
		}
	})
}

// as returns a client that is somebody who may do everything.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()

	return world.Impersonate(t, running, user, append(groups, "system:masters")...)
}

// sync does the next thing that each Pod needs.
func (k kubelet) sync(ctx context.Context) error {
	list := &corev1.PodList{}
	if err := k.agent.List(ctx, list, client.InNamespace(k.namespace)); err != nil {
		return err
	}

	for i := range list.Items {
		if err := k.care(ctx, &list.Items[i]); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}

	return nil
}

func (k kubelet) care(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName == "":
		return k.scheduler.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: k.namespace},
		})
	case pod.DeletionTimestamp != nil:
		return k.agent.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.Status.Phase == corev1.PodRunning:
		return nil
	}

	pod.Status.Phase = corev1.PodRunning

	for _, typ := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}

	return k.agent.Status().Update(ctx, pod)
}
