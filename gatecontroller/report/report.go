// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

const (
	// Name of the Reports, and the source of their results.
	Name = "kausality"
	// ManagedBy is their label [openreport.LabelManagedBy].
	ManagedBy = object.FieldManager
)

const (
	// request is the one there is.
	request = "reports"
	// settle is how long it is waited for all that is watched to be known: at first, and when
	// something comes to be watched.
	settle = time.Minute
	// soon is how often it is looked meanwhile.
	soon = 2 * time.Second
)

// Reconciler keeps the Reports. It works on one request at a time.
type Reconciler struct {
	// Client writes Reports, Live reads them.
	Client client.Client
	Live   client.Reader
	// Reader reads policies and the metadata of CRDs from the cache.
	Reader client.Reader
	Mapper meta.RESTMapper
	// Watched has the objects that are judged.
	Watched Watched
	// Composed knows what XRs compose.
	Composed *discovery.Kinds
	// Policies say for how long gates may be open, and Gate where they do not.
	Policies *gates.PolicyGates
	Gate     gate.Options
	// Every is how often they are brought up to date.
	Every time.Duration
	Now   func() time.Time

	// begun is when it was looked first since all was known; zero where it is.
	begun time.Time
	// kept are the Reports as they were left last, by namespace.
	kept map[string]kept
	// refused is true once it was logged that Reports may not be kept.
	refused bool
}

// kept is a Report as it was left.
type kept struct {
	// version of it, and fingerprint of what it says.
	version, fingerprint string
}

// Controller makes the controller of the Reports. CRDs are watched anyway.
func (r *Reconciler) Controller(c cache.Cache, logger logr.Logger) (controller.Controller, error) {
	again := handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: request}}}
	})
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool { return slices.Contains(definitions(), obj.GetName()) })

	return object.NewController(request, r, controller.Options{Logger: logger}, source.Kind(c, client.Object(definition()), again, ours))
}

// definitions are the names of the CRDs of OpenReports.
func definitions() []string { return []string{openreport.CRDReports, openreport.CRDClusterReports} }

// definition is what of a CRD is watched.
func definition() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	return crd
}

// Reconcile brings all Reports up to date. Where nothing serves them it does nothing,
// until their CRDs come.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// 1. Is there anything to write to?
	installed, err := r.installed(ctx)
	if err != nil || !installed {
		r.kept = nil

		return reconcile.Result{}, err
	}

	now := r.Now()
	if r.begun.IsZero() {
		r.begun = now
	}

	// 2. Judge what is known. What is not yet may be in a moment.
	found, complete, settled, err := r.judge(ctx, now)
	if err != nil {
		return reconcile.Result{}, err
	}

	if !settled && now.Sub(r.begun) < settle {
		return reconcile.Result{RequeueAfter: soon}, nil
	}

	if settled {
		r.begun = time.Time{}
	}

	// 3. Write what is new.
	err = r.write(ctx, found, complete, now)

	switch {
	case err == nil:
		r.refused = false
	case object.IsGone(err):
		r.kept = nil // Nothing serves them yet, or any more.
	case apierrors.IsForbidden(err):
		if !r.refused {
			log.FromContext(ctx).Info("Cannot keep Reports, and tries on; switch them off with --report-interval=0", "reason", err.Error())
		}

		r.refused = true
	default:
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: r.Every}, nil
}

// installed reports whether the CRDs of OpenReports are there, both of them.
func (r *Reconciler) installed(ctx context.Context) (bool, error) {
	for _, name := range definitions() {
		switch err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, definition()); {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("cannot get CRD %q: %w", name, err)
		}
	}

	return true, nil
}
