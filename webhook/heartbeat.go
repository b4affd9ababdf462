// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kausality-system,resources=leases,verbs=get;list;watch;create;update

// beat is how often the heartbeat is renewed.
const beat = 10 * time.Second

// Heartbeat shows how old the cache is: a lease that one of the replicas renews
// comes back to each of them through the watches that everything else comes
// through. The cache must hold no other leases.
type Heartbeat struct {
	client client.Client
	key    client.ObjectKey
	log    logr.Logger
	now    func() time.Time
}

// NewHeartbeat makes a Heartbeat of a lease.
func NewHeartbeat(c client.Client, key client.ObjectKey, log logr.Logger, now func() time.Time) *Heartbeat {
	return &Heartbeat{client: c, key: key, log: log, now: now}
}

// Register registers the metric that shows the age of the cache. The context is
// that of the manager.
func (h *Heartbeat) Register(ctx context.Context, reg prometheus.Registerer) error {
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kausality_webhook_cache_age_seconds",
		Help: "How old the newest that the caches know is: up to some ten seconds while all is well. -1 until they know anything.",
	}, func() float64 {
		age, err := h.age(ctx)
		if err != nil {
			return -1
		}

		return age.Seconds()
	})

	if err := reg.Register(age); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}

	return nil
}

// Start renews the lease where no other replica does, until the context ends.
func (h *Heartbeat) Start(ctx context.Context) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()

	for {
		if err := h.renew(ctx); err != nil && ctx.Err() == nil {
			h.log.Error(err, "Cannot renew the heartbeat, so that the age of the cache is not known")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// NeedLeaderElection is false: every replica serves.
func (*Heartbeat) NeedLeaderElection() bool { return false }

// age is how long ago the lease was renewed, as the cache has it.
func (h *Heartbeat) age(ctx context.Context) (time.Duration, error) {
	lease := &coordinationv1.Lease{}
	if err := h.client.Get(ctx, h.key, lease); err != nil {
		return 0, err
	}

	if lease.Spec.RenewTime == nil {
		return beat, nil
	}

	return max(0, h.now().Sub(lease.Spec.RenewTime.Time)), nil
}

// renew renews the lease if it is time. Another replica may be faster.
func (h *Heartbeat) renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := h.client.Get(ctx, h.key, lease)

	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.key.Namespace, Name: h.key.Name, Labels: map[string]string{v1alpha1.LabelOwn: "true"},
		}}
		lease.Spec.RenewTime = new(metav1.NewMicroTime(h.now()))
		err = h.client.Create(ctx, lease)
	case err != nil:
	case lease.Spec.RenewTime != nil && h.now().Sub(lease.Spec.RenewTime.Time) < beat*9/10:
		return nil
	default:
		lease.Spec.RenewTime = new(metav1.NewMicroTime(h.now()))
		err = h.client.Update(ctx, lease)
	}

	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot renew lease %q: %w", h.key, err)
	}

	return nil
}
