// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// applications is whose turn it is to have a CRD of Argo CD's Applications: the tool's
// own, or that of the example which stands in for it.
var applications sync.Mutex

// takeApplications waits for its turn, and takes the CRD away when the test is over.
func takeApplications(t *testing.T) {
	t.Helper()
	applications.Lock()

	c := somebody(t)

	t.Cleanup(func() {
		defer applications.Unlock()

		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("applications.argoproj.io")

		ctx := context.WithoutCancel(t.Context())
		if err := client.IgnoreNotFound(c.Delete(ctx, crd)); err != nil {
			t.Error(err)
		}

		if err := scenario.Eventually(ctx, "a CRD that is gone", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
				return errors.Join(err, world.ErrOther)
			}

			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
