// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// LeaseName is the name of the lease that the leader of a shard's managers holds.
func LeaseName(shard string) string {
	if shard == "" {
		return "kausality-manager"
	}

	return "kausality-manager-" + shard
}

// Unattended tells of namespaces whose label names a shard that no manager looks
// after: their gates stay as they are.
type Unattended struct {
	shard     *Shard
	live      client.Reader
	namespace string
	events    events.EventRecorder
	now       func() time.Time
	gauge     *prometheus.GaugeVec

	// warned are the namespaces that it was told of.
	warned map[string]bool
}

// NewUnattended makes Unattended, and registers its metric.
func NewUnattended(
	reg prometheus.Registerer, shard *Shard, live client.Reader, told events.EventRecorder, namespace string, now func() time.Time,
) (*Unattended, error) {
	x := &Unattended{
		shard: shard, live: live, namespace: namespace,
		events: told, now: now, warned: map[string]bool{},
	}

	var err error

	x.gauge, err = UnattendedGauge(reg)

	return x, err
}

// UnattendedGauge makes the metric, and registers it.
func UnattendedGauge(reg prometheus.Registerer) (*prometheus.GaugeVec, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kausality_shard_unattended",
		Help: "1 for a shard that namespaces are labelled with and no manager looks after, 0 for others.",
	}, []string{"shard"})

	if err := reg.Register(gauge); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	return gauge, nil
}

// Check finds them.
func (x *Unattended) Check(ctx context.Context) error {
	shards := x.shard.others()
	told := map[string]bool{}

	x.gauge.Reset()

	for _, name := range slices.Sorted(maps.Keys(shards)) {
		attended, err := x.attended(ctx, name)
		if err != nil {
			return err
		}

		if attended {
			x.gauge.WithLabelValues(name).Set(0)

			continue
		}

		x.gauge.WithLabelValues(name).Set(1)

		for _, ns := range shards[name] {
			told[ns.GetName()] = true
			if !x.warned[ns.GetName()] {
				x.warn(ctx, ns, name)
			}
		}
	}

	x.warned = told

	return nil
}

func (x *Unattended) warn(ctx context.Context, ns client.Object, name string) {
	text := fmt.Sprintf("no manager runs with --shard=%s, as the label %s of this namespace says: its gates stay as they are",
		name, v1alpha1.LabelShard)
	x.events.Eventf(ns, nil, corev1.EventTypeWarning, "KausalityShardUnattended", "Shard", "%s", text)
	log.FromContext(ctx).Info("Nobody looks after a namespace", "namespace", ns.GetName(), "shard", name)
}

// attended says whether a manager of the shard holds its lease.
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
