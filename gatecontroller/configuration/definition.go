// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// DefinitionOwner makes our namespace an owner of our CRDs, each by its name. Crossplane
// makes the Provider and its revision their owners. When both are gone the garbage
// collector deletes what they owned, with all policies; and where a guard refuses
// that, a Provider that is installed again cannot take over what a revision
// controls that is gone. Where our namespace is an owner as well, the garbage
// collector takes those that are gone off instead.
type DefinitionOwner struct {
	Client client.Client
	// Live is the API server.
	Live client.Reader
	// Namespace we run in.
	Namespace string
}

// kindNamespace is the kind of the owner.
const kindNamespace = "Namespace"

// Controller makes the controller of our CRDs.
func (r *DefinitionOwner) Controller(c cache.Cache, l logr.Logger) (controller.Controller, error) {
	return object.NewController("definition", r, controller.Options{Logger: l},
		source.Kind(c, client.Object(empty()), &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(ours)))
}

func empty() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	return crd
}

// ours reports whether an object is one of our CRDs.
func ours(obj client.Object) bool {
	return slices.ContainsFunc(v1alpha1.Definitions(), func(d v1alpha1.Definition) bool { return d.Name() == obj.GetName() })
}

// Reconcile reconciles one CRD: our namespace is its owner, too. Where the API server forbids that, it is logged and left.
func (r *DefinitionOwner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	crd := empty()
	if err := r.Client.Get(ctx, req.NamespacedName, crd); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	if !needsOwner(crd) {
		return reconcile.Result{}, nil
	}

	err := r.addOwner(ctx, crd)

	switch {
	case apierrors.IsForbidden(err):
		// Some clusters let only who may delete something say who owns it.
		log.FromContext(ctx).Info("A CRD of ours goes with its package, for the manager may not make its namespace an owner of it",
			"name", req.Name, "error", err.Error())

		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot make namespace %q an owner of CustomResourceDefinition %q: %w", r.Namespace, req.Name, err)
	}

	return reconcile.Result{}, nil
}

// needsOwner reports whether a CRD is of a package, and would go with it.
func needsOwner(crd *metav1.PartialObjectMetadata) bool {
	return metav1.GetControllerOf(crd) != nil &&
		!slices.ContainsFunc(crd.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == kindNamespace })
}

// addOwner adds our namespace to the owners of a CRD.
func (r *DefinitionOwner) addOwner(ctx context.Context, crd *metav1.PartialObjectMetadata) error {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindNamespace))

	if err := r.Live.Get(ctx, client.ObjectKey{Name: r.Namespace}, ns); err != nil {
		return err
	}

	out := crd.DeepCopy()
	out.SetOwnerReferences(append(out.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: ns.APIVersion, Kind: ns.Kind, Name: ns.GetName(), UID: ns.GetUID(),
	}))

	return r.Client.Patch(ctx, out, object.MergeFrom(crd))
}
