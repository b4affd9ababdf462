// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

// rights knows what we may not do with the kinds that are governed. A kind that
// may not be read is not watched: its informer would never be filled, and what
// waits for that would wait for ever.
type rights struct {
	access *access.Access
	desc   *prometheus.Desc

	mu    sync.Mutex
	lacks []right.Lack
}

func newRights(a *access.Access) *rights {
	return &rights{access: a, desc: prometheus.NewDesc("kausality_missing_rights",
		"Resources that are governed and of which the manager may not do all that it has to, each 1: see kubectl kausality doctor.",
		[]string{labelGroup, "resource"}, nil)}
}

// look finds out what is missing for all that is asked for, and for what is to be
// watched beside that, and logs what is missing now and was not before. It says
// whether something is there that was missing.
func (r *rights) look(ctx context.Context, want wanted, served, watched []servedKind) (came bool) {
	now := r.access.Lacks(ctx, needs(want, served, watched))

	r.mu.Lock()
	was := r.lacks
	r.lacks = now
	r.mu.Unlock()

	for _, l := range now {
		if !right.Has(was, l.GroupResource) {
			log.FromContext(ctx).Info("A right is missing for what is governed", "group", l.Group, "resource", l.Resource,
				"problem", right.Message([]right.Lack{l}))
		}
	}

	for _, l := range was {
		if !right.Has(now, l.GroupResource) {
			came = true

			log.FromContext(ctx).Info("A right that was missing is there", "group", l.Group, "resource", l.Resource)
		}
	}

	return came
}

// needs are what it takes to govern what is asked for.
func needs(want wanted, served, watched []servedKind) []right.Need {
	kinds := rightKinds(served)
	lists := make([][]right.Need, 0, len(want.policies)+len(want.windows)+len(want.enforcements)+1)

	for i := range want.policies {
		lists = append(lists, right.OfPolicy(&want.policies[i], kinds))
	}

	for i := range want.windows {
		lists = append(lists, right.OfWindow(&want.windows[i], kinds))
	}

	for i := range want.enforcements {
		lists = append(lists, right.OfEnforcement(&want.enforcements[i], kinds))
	}

	var beside []right.Need

	for _, k := range watched {
		if k.gvk.GroupKind() == resource.RevisionKind() {
			beside = append(beside, right.Read(k.groupResource()))
		} else {
			beside = append(beside, right.Governed(k.asRight()))
		}
	}

	return right.Join(append(lists, beside)...)
}

// missing says whether anything is.
func (r *rights) missing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return len(r.lacks) > 0
}

// of says what is missing of some needs, and what helps; empty for nothing.
func (r *rights) of(needs []right.Need) string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return right.Message(right.Of(r.lacks, needs))
}

// readable leaves out the kinds that may not be read.
func (r *rights) readable(ctx context.Context, kinds []servedKind) []servedKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k servedKind) bool { return !r.access.Reads(ctx, k.groupResource()) })
}

// because is the reason and message of a condition where rights are missing; false
// where they are not.
func (r *rights) because(needs []right.Need, what string) (reason, message string, missing bool) {
	if r == nil {
		return "", "", false
	}

	said := r.of(needs)

	return v1alpha1.ReasonRightsMissing, what + ": " + said, said != ""
}

// Describe implements prometheus.Collector.
func (r *rights) Describe(out chan<- *prometheus.Desc) { out <- r.desc }

// Collect implements prometheus.Collector.
func (r *rights) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, l := range r.lacks {
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, 1, l.Group, l.Resource)
	}
}
