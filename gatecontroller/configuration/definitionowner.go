// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"fmt"
	"slices"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
)

// Definitions has our CRDs outlive the package that brought them.
type Definitions struct {
	Client client.Client
	// Reader is the cache, live the API server.
	Reader, Live client.Reader
	// Namespace we run in.
	Namespace string
}

// addOwners has our CRDs outlive the package that brought them. Crossplane
// makes the Provider and its revision their owners. When both are gone the garbage
// collector deletes what they owned, with all policies; and where a guard refuses
// that, a Provider that is installed again cannot take over what a revision
// controls that is gone. Where our namespace is an owner as well, the garbage
// collector takes those that are gone off instead.
func (d *Definitions) addOwners(ctx context.Context) error {
	for _, one := range v1alpha1.Definitions() {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

		name := one.Name()
		if err := d.Reader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return fmt.Errorf("cannot get CustomResourceDefinition %q: %w", name, err)
		}

		err := d.addOwner(ctx, crd)
		if apierrors.IsForbidden(err) {
			// Some clusters let only who may delete something say who owns it.
			log.FromContext(ctx).Info("A CRD of ours goes with its package, for we may not keep it", "name", name, "error", err.Error())

			return nil
		}

		if err != nil {
			return fmt.Errorf("cannot keep CustomResourceDefinition %q: %w", name, err)
		}
	}

	return nil
}

func (d *Definitions) addOwner(ctx context.Context, crd *metav1.PartialObjectMetadata) error {
	refs := crd.GetOwnerReferences()
	ns := shard.Namespace()

	kept := slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.Kind == ns.Kind })
	if kept || metav1.GetControllerOf(crd) == nil {
		return nil // So already, or of no package.
	}

	if err := d.Live.Get(ctx, client.ObjectKey{Name: d.Namespace}, ns); err != nil {
		return err
	}

	out := crd.DeepCopy()
	out.SetOwnerReferences(append(slices.Clone(refs), metav1.OwnerReference{
		APIVersion: ns.APIVersion, Kind: ns.Kind, Name: ns.GetName(), UID: ns.GetUID(),
	}))

	return d.Client.Patch(ctx, out, client.MergeFromWithOptions(crd, client.MergeFromWithOptimisticLock{}))
}
