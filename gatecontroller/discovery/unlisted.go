// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// behind returns the kinds that a CRD has the API server serve and that this
// does not list: for a moment when it starts, and for longer where an APIService
// takes the CRD's group version away from it or cannot be reached. To take such
// a kind for one that is gone would take guards, webhooks and finalizers away.
// So it is made of its CRD, and prevents no other kind from being reconciled.
func (r *Resolver) behind(ctx context.Context, crds map[string]string, lists []*metav1.APIResourceList) ([]kind.Served, error) {
	listed := map[string]bool{}

	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) // What is no group lists nothing of ours.
		for _, res := range list.APIResources {
			listed[res.Name+"."+gv.Group] = true
		}
	}

	var out []kind.Served

	for _, name := range slices.Sorted(maps.Keys(crds)) {
		if listed[name] {
			continue
		}

		crd := &extv1.CustomResourceDefinition{}

		err := r.Live.Get(ctx, client.ObjectKey{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("cannot get CRD %q: %w", name, err)
		}

		if k, ok := defined(crd, crds[name]); ok {
			out = append(out, k)
		}
	}

	return out, nil
}

// defined is the kind that a CRD defines, in the version that discovery would
// prefer. False where it defines none that could be governed.
func defined(crd *extv1.CustomResourceDefinition, definition string) (kind.Served, bool) {
	established := slices.ContainsFunc(crd.Status.Conditions, func(c extv1.CustomResourceDefinitionCondition) bool {
		return c.Type == extv1.Established && c.Status == extv1.ConditionTrue
	})

	served := slices.DeleteFunc(slices.Clone(crd.Spec.Versions), func(v extv1.CustomResourceDefinitionVersion) bool { return !v.Served })
	names := crd.Spec.Names

	if !established || len(served) == 0 || enforcement.Beyond(schema.GroupResource{Group: crd.Spec.Group, Resource: names.Plural}) {
		return kind.Served{}, false
	}

	v := slices.MaxFunc(served, func(a, b extv1.CustomResourceDefinitionVersion) int {
		return kubeversion.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})

	return kind.Served{
		GVK:        schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind},
		Resource:   names.Plural,
		Crossplane: slices.Contains(names.Categories, "composite") || slices.Contains(names.Categories, "claim"),
		Scales: slices.ContainsFunc(served, func(v extv1.CustomResourceDefinitionVersion) bool {
			return v.Subresources != nil && v.Subresources.Scale != nil
		}),
		Owns:       !slices.Contains(names.Categories, "managed"),
		Definition: definition + "/" + v.Name,
		Unlisted:   true,
	}, true
}

// lost are the kinds that were served last by group versions that cannot be
// discovered now, and that no other version lists: an APIService that cannot be
// reached has taken nothing away.
func (r *Resolver) lost(found []kind.Served, partial *discovery.ErrGroupDiscoveryFailed) []kind.Served {
	if partial == nil {
		return nil
	}

	var out []kind.Served

	for _, k := range r.last {
		_, failed := partial.Groups[k.GVK.GroupVersion()]
		same := func(o kind.Served) bool { return o.GroupResource() == k.GroupResource() }

		if failed && !slices.ContainsFunc(found, same) {
			k.Unlisted = true
			out = append(out, k)
		}
	}

	return out
}

// unlistedLong is how long a kind may be missing from discovery before that is
// told: an API server that starts lists CRDs before what they define.
const unlistedLong = 30 * time.Second

// Unlisted knows the kinds that discovery does not list, and since when.
type Unlisted struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu       sync.Mutex
	since    map[schema.GroupKind]time.Time
	reported map[schema.GroupKind]bool
}

// NewUnlisted makes Unlisted by a clock.
func NewUnlisted(now func() time.Time) *Unlisted {
	return &Unlisted{
		now: now, since: map[schema.GroupKind]time.Time{}, reported: map[schema.GroupKind]bool{},
		desc: prometheus.NewDesc("kausality_unlisted_kinds",
			"Kinds that are governed as they were and that the API server has not listed for half a minute, each 1: see its APIServices.",
			[]string{object.LabelGroup, object.LabelKind}, nil),
	}
}

// Set notes which of the kinds that are served are not listed, and logs what is
// new for long enough. True where some are not.
func (x *Unlisted) Set(ctx context.Context, served []kind.Served) bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	since, missing := map[schema.GroupKind]time.Time{}, map[schema.GroupKind]bool{}

	for _, k := range served {
		if !k.Unlisted {
			continue
		}

		gk := k.GVK.GroupKind()

		since[gk] = x.now()
		if was, ok := x.since[gk]; ok {
			since[gk] = was
		}

		if missing[gk] = x.now().Sub(since[gk]) >= unlistedLong; missing[gk] && !x.reported[gk] {
			log.FromContext(ctx).Info("The API server does not list a kind; it is governed as it was. See its APIServices",
				"group", gk.Group, "kind", gk.Kind)
		}
	}

	x.since, x.reported = since, missing

	return len(since) > 0
}

// Without leaves out the kinds that have not been listed for long: nobody is informed
// that what is about them is in force.
func (x *Unlisted) Without(served []kind.Served) []kind.Served {
	x.mu.Lock()
	defer x.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(served), func(k kind.Served) bool { return x.reported[k.GVK.GroupKind()] })
}

// Describe implements prometheus.Collector.
func (x *Unlisted) Describe(out chan<- *prometheus.Desc) { out <- x.desc }

// Collect implements prometheus.Collector.
func (x *Unlisted) Collect(out chan<- prometheus.Metric) {
	x.mu.Lock()
	defer x.mu.Unlock()

	for gk, missing := range x.reported {
		if missing {
			out <- prometheus.MustNewConstMetric(x.desc, prometheus.GaugeValue, 1, gk.Group, gk.Kind)
		}
	}
}
