// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/unmanaged"
)

// LeaseName is the name of the lease that the leader of a shard's managers holds.
func LeaseName(shard string) string {
	if shard == "" {
		return "kausality-manager"
	}

	return "kausality-manager-" + shard
}

// Unattended reports namespaces whose label names a shard that no manager runs
// for: their gates stay as they are.
type Unattended struct {
	shard     *Shard
	live      client.Reader
	namespace string
	events    events.EventRecorder
	now       func() time.Time
	gauge     *prometheus.GaugeVec

	// warned are the namespaces of each shard that it was reported.
	warned map[string]map[string]bool
}

// NewUnattended makes Unattended, and registers its metric.
func NewUnattended(
	reg prometheus.Registerer, shard *Shard, live client.Reader, told events.EventRecorder, namespace string, now func() time.Time,
) (*Unattended, error) {
	x := &Unattended{
		shard: shard, live: live, namespace: namespace,
		events: told, now: now, warned: map[string]map[string]bool{},
	}

	var err error

	x.gauge, err = UnattendedGauge(reg)

	return x, err
}

// UnattendedGauge makes the metric, and registers it.
func UnattendedGauge(reg prometheus.Registerer) (*prometheus.GaugeVec, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kausality_shard_unattended",
		Help: "1 for a shard that namespaces are labelled with and no manager runs for, 0 for others.",
	}, []string{"shard"})

	if err := reg.Register(gauge); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	return gauge, nil
}

// attendEvery is how often it is checked whether a manager of a shard runs.
const attendEvery = time.Minute

// Controller makes the controller of shards that no manager runs for: each by its name.
func (x *Unattended) Controller(c cache.Cache, l logr.Logger) (controller.Controller, error) {
	shards := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, ns client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: OfNamespace(ns)}}}
	})

	return unmanaged.New("shards", x, controller.Options{Logger: l},
		source.Kind(c, client.Object(Namespace()), shards, predicate.Predicate(LabelChanged())))
}

// Reconcile checks whether a manager runs for one shard, as long as a namespace is in it.
func (x *Unattended) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespaces := x.shard.others()[req.Name]
	if len(namespaces) == 0 {
		x.gauge.DeleteLabelValues(req.Name)
		delete(x.warned, req.Name)

		return reconcile.Result{}, nil
	}

	attended, err := x.attended(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}

	x.gauge.WithLabelValues(req.Name).Set(0)

	warned := map[string]bool{}

	if !attended {
		x.gauge.WithLabelValues(req.Name).Set(1)

		for _, ns := range namespaces {
			warned[ns.GetName()] = true
			if !x.warned[req.Name][ns.GetName()] {
				x.warn(ctx, ns, req.Name)
			}
		}
	}

	x.warned[req.Name] = warned

	return reconcile.Result{RequeueAfter: attendEvery}, nil
}

func (x *Unattended) warn(ctx context.Context, ns client.Object, name string) {
	text := fmt.Sprintf("no manager runs with --shard=%s, as the label %s of this namespace says: its gates stay as they are",
		name, v1alpha1.LabelShard)
	x.events.Eventf(ns, nil, corev1.EventTypeWarning, string(v1alpha1.EventReasonShardUnattended), "Shard", "%s", text)
	log.FromContext(ctx).Info("No manager runs for the shard of a namespace", "namespace", ns.GetName(), "shard", name)
}

// attended reports whether a manager of the shard holds its lease.
func (x *Unattended) attended(ctx context.Context, name string) (bool, error) {
	lease := &coordinationv1.Lease{}

	err := x.live.Get(ctx, client.ObjectKey{Namespace: x.namespace, Name: LeaseName(name)}, lease)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("cannot get the lease of shard %q: %w", name, err)
	}

	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return false, nil
	}

	return x.now().Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)), nil
}
