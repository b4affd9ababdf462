// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

const (
	// gatelessAfter is how long the function has to come to a managed resource that was there before it.
	gatelessAfter = 30 * time.Second
	// gatelessYoung is for how long what is above a managed resource may not be known yet, and gatelessAgain when that is asked once more.
	// While not all is known of any, as after a start or without rights, each is asked once in the former.
	gatelessYoung = time.Minute
	gatelessAgain = 10 * time.Second
	// maxLevels are the XRs above a managed resource that are looked at.
	maxLevels = 8
)

// Gateless remembers the managed resources below XRs that run the function that have no gate, whatever the reason: a later step of
// the pipeline composed them, a nested Composition has no step of ours, a restored backup left the annotations out.
type Gateless struct {
	Composed *discovery.Kinds
	Events   events.EventRecorder
	Now      func() time.Time
	// Read returns the object that a reference is to, [object.ErrGone] where it is gone.
	Read func(ctx context.Context, ref v1alpha1.ObjectReference, live bool) (*unstructured.Unstructured, error)

	desc *prometheus.Desc

	mu    sync.Mutex
	since map[schema.GroupKind]map[types.NamespacedName]gateless
}

// gateless is since when a managed resource has no gate, and whether that was told.
type gateless struct {
	since time.Time
	told  bool
}

// Init makes it ready for use. It returns its argument.
func (g *Gateless) Init() *Gateless {
	g.since = map[schema.GroupKind]map[types.NamespacedName]gateless{}
	g.desc = prometheus.NewDesc("kausality_resources_without_gate",
		"Managed resources without a gate below XRs of which the Composition runs the function.",
		[]string{object.LabelGroup, object.LabelKind}, nil)

	return g
}

// observe looks at a managed resource. It returns when to look again; zero for at its next change.
func (g *Gateless) observe(ctx context.Context, u *unstructured.Unstructured) (time.Duration, error) {
	gk, key := u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)

	if !resource.IsManaged(u) || management.Governed(u) || management.Audited(u) {
		g.forget(gk, key)

		return 0, nil
	}

	xr, err := g.gatedBy(ctx, u)
	if err != nil {
		return 0, err
	}

	age := g.Now().Sub(u.GetCreationTimestamp().Time)

	if xr == nil {
		g.forget(gk, key)

		_, known := g.Composed.Gates(gk)

		switch {
		case age < gatelessYoung:
			return gatelessAgain, nil
		case !known:
			return gatelessYoung, nil
		default:
			return 0, nil
		}
	}

	since := g.Now()
	if age < gatelessYoung { // It has had none since it was made.
		since = u.GetCreationTimestamp().Time
	}

	again, tell := g.remember(gk, key, since)
	if tell {
		why := "the function did not compose it. Make it the last step of the Composition"
		if resource.Map(u.Object, "spec")["managementPolicies"] == nil {
			why = u.GetAPIVersion() + " of its kind has no spec.managementPolicies. Compose another version, if there is one that has"
		}

		g.Events.Eventf(u, xr, corev1.EventTypeWarning, string(v1alpha1.EventReasonUngated), "Observe",
			"no gate, though %s runs the function: %s", resource.Argument(xr), why)
	}

	return again, nil
}

// gatedBy returns the XR above a managed resource that runs the function; nil for none.
func (g *Gateless) gatedBy(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for range maxLevels {
		ref, ok := resource.ParentOf(u)
		if !ok {
			return nil, nil //nolint:nilnil // There is none.
		}

		parent, err := g.Read(ctx, v1alpha1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
		}, false)
		if errors.Is(err, object.ErrGone) || apierrors.IsForbidden(err) {
			return nil, nil //nolint:nilnil // As above, or that is told elsewhere.
		}

		if err != nil {
			return nil, err
		}

		if resource.IsComposite(parent) && resource.RunsFor(parent, g.Composed.Runs()) {
			return parent, nil
		}

		u = parent
	}

	return nil, nil //nolint:nilnil // As above.
}

// remember returns when to look again at what has no gate since a time, and whether that is to be told now.
func (g *Gateless) remember(gk schema.GroupKind, key types.NamespacedName, since time.Time) (again time.Duration, tell bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.since[gk] == nil {
		g.since[gk] = map[types.NamespacedName]gateless{}
	}

	one, known := g.since[gk][key]
	if !known {
		one.since = since
	}

	if again = gatelessAfter - g.Now().Sub(one.since); again <= 0 {
		again, tell, one.told = 0, !one.told, true
	}

	g.since[gk][key] = one

	return again, tell
}

// Drop forgets a kind that is not reconciled any more.
func (g *Gateless) Drop(gk schema.GroupKind) {
	g.mu.Lock()
	defer g.mu.Unlock()

	delete(g.since, gk)
}

func (g *Gateless) forget(gk schema.GroupKind, key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()

	delete(g.since[gk], key)
}

// Describe implements prometheus.Collector.
func (g *Gateless) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *Gateless) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()

	for gk, found := range g.since {
		n := 0

		for _, one := range found {
			if one.told {
				n++
			}
		}

		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), gk.Group, gk.Kind)
	}
}
