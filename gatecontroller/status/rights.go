// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

// Rights knows what we may not do with the kinds that are governed. A kind that
// may not be read is not watched: its informer would never be filled, and what
// waits for that would wait for ever.
type Rights struct {
	access *access.Access
	desc   *prometheus.Desc

	mu      sync.Mutex
	missing []right.MissingRights
}

// NewRights makes Rights by what the API server answers.
func NewRights(a *access.Access) *Rights {
	return &Rights{access: a, desc: prometheus.NewDesc("kausality_missing_rights",
		"Resources that are governed and of which the manager may not do all that it has to, each 1: see kubectl kausality doctor.",
		[]string{object.LabelGroup, "resource"}, nil)}
}

// Refresh finds out what is missing for all that is asked for, and for what is to be
// watched beside that, and logs what is missing now and was not before. It says
// whether something is there that was missing.
func (r *Rights) Refresh(ctx context.Context, want admission.Config, served, watched []kind.Served) (came bool) {
	now := r.access.Missing(ctx, needs(want, served, watched))

	r.mu.Lock()
	was := r.missing
	r.missing = now
	r.mu.Unlock()

	for _, l := range now {
		if !right.Has(was, l.Need.GroupResource) {
			log.FromContext(ctx).Info("A right is missing for what is governed", "group", l.Need.Group, "resource", l.Need.Resource,
				"problem", right.Message([]right.MissingRights{l}, message.Most))
		}
	}

	for _, l := range was {
		if !right.Has(now, l.Need.GroupResource) {
			came = true

			log.FromContext(ctx).Info("A right that was missing is there", "group", l.Need.Group, "resource", l.Need.Resource)
		}
	}

	return came
}

// needs are what it takes to govern what is asked for.
func needs(want admission.Config, served, watched []kind.Served) []right.Need {
	kinds := kind.ForRights(served)
	lists := make([][]right.Need, 0, len(want.Policies)+len(want.Windows)+len(want.Enforcements)+1)

	want = want.InForce()
	for i := range want.Policies {
		lists = append(lists, right.OfPolicy(&want.Policies[i], kinds))
	}

	for i := range want.Windows {
		lists = append(lists, right.OfWindow(&want.Windows[i], kinds))
	}

	for i := range want.Enforcements {
		lists = append(lists, right.OfEnforcement(&want.Enforcements[i], kinds))
	}

	var beside []right.Need

	for _, k := range watched {
		if k.GVK.GroupKind() == resource.RevisionKind() {
			beside = append(beside, right.Read(k.GroupResource()))
		} else {
			beside = append(beside, right.Governed(k.AsRight()))
		}
	}

	return right.Join(append(lists, beside)...)
}

// Missing reports whether anything is.
func (r *Rights) Missing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return len(r.missing) > 0
}

// Message says what comes of the rights that are missing of some needs, which these are, and what helps; empty for nothing.
func (r *Rights) Message(needs []right.Need, what string) string {
	if r == nil {
		return ""
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	list := right.Of(r.missing, needs)
	if len(list) == 0 {
		return ""
	}

	what += ": "

	return what + right.Message(list, message.Most-utf8.RuneCountInString(what))
}

// Readable leaves out the kinds that may not be read.
func (r *Rights) Readable(ctx context.Context, kinds []kind.Served) []kind.Served {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind.Served) bool { return !r.access.Reads(ctx, k.GroupResource()) })
}

// Condition is the reason and message of a condition where rights are missing, with what that means in words; false
// where they are not.
func (r *Rights) Condition(needs []right.Need, what string) (reason, text string, missing bool) {
	said := r.Message(needs, what)

	return v1alpha1.ReasonRightsMissing, said, said != ""
}

// Describe implements prometheus.Collector.
func (r *Rights) Describe(out chan<- *prometheus.Desc) { out <- r.desc }

// Collect implements prometheus.Collector.
func (r *Rights) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, l := range r.missing {
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, 1, l.Need.Group, l.Need.Resource)
	}
}
