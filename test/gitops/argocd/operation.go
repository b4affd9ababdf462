// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/gitops-engine/pkg/sync"
	synccommon "github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// operation is a sync that is over.
type operation struct {
	revision string
	at       time.Time
	phase    synccommon.OperationPhase
	message  string
}

// synced syncs, as the service account that the AppProject names. Argo CD would try five times
// what fails, with more and more time in between; this does once.
func (a *automated) synced(result sync.ReconciliationResult) operation {
	out := operation{phase: synccommon.OperationError}

	user, err := a.account()
	if err != nil {
		out.message = err.Error()

		return out
	}

	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}

	// As Argo CD has it where the Application does not say otherwise.
	propagation := metav1.DeletePropagationForeground

	s, cleanup, err := sync.NewSyncContext("", result, config, config, a.kubectl, a.app.Spec.Destination.Namespace, a.schema,
		sync.WithLogr(logr.Discard()),
		sync.WithPermissionValidator(a.permitted),
		sync.WithOperationSettings(false, a.app.Spec.SyncPolicy.Automated.Prune, false, false),
		sync.WithInitialState(synccommon.OperationRunning, "", nil, metav1.Now()),
		sync.WithPrunePropagationPolicy(&propagation),
		sync.WithServerSideApply(serverSide(a.app)),
		sync.WithServerSideApplyManager(common.ArgoCDSSAManager))
	if err != nil {
		out.message = err.Error()

		return out
	}
	defer cleanup()

	for {
		s.Sync()

		phase, message, resources := s.GetState()
		if !phase.Completed() {
			time.Sleep(every)

			continue
		}

		said := []string{message}
		for _, r := range resources {
			said = append(said, fmt.Sprintf("%s %s: %s: %s", r.ResourceKey.Kind, r.ResourceKey.Name, r.Status, r.Message))
		}

		return operation{at: time.Now(), phase: phase, message: strings.Join(said, "; ")}
	}
}

// permitted says why an object is not one that the AppProject permits.
func (a *automated) permitted(u *unstructured.Unstructured, resource *metav1.APIResource) error {
	gvk := u.GroupVersionKind()
	if !a.project.IsGroupKindPermitted(gvk.GroupKind(), resource.Namespaced) {
		return fmt.Errorf("resource %s:%s is not permitted in project %s", gvk.Group, gvk.Kind, a.project.Name)
	}

	permitted, err := a.project.IsDestinationPermitted(&v1alpha1.Cluster{Server: a.app.Spec.Destination.Server}, u.GetNamespace(), nil)
	if err != nil {
		return err
	}

	if !permitted {
		return fmt.Errorf("namespace %s is not permitted in project %s", u.GetNamespace(), a.project.Name)
	}

	return nil
}
