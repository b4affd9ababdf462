// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
)

// Reconciler brings webhook configurations, guards and watches in line with
// the policies and kinds there are. It works on one request at a time.
type Reconciler struct {
	Client   client.Client
	Reader   client.Reader
	Resolver *discovery.Resolver
	Watches  *watch.Watches
	Statuses *status.Reporter
	// Gated is true where gates and their guards are switched on.
	Gated bool
	// Applier applies webhook configurations and guards.
	Applier *Applier
	// OpenGates are the gates that are.
	OpenGates func() map[schema.GroupKind][]types.NamespacedName
	// Composed finds what is gated though nobody names it.
	Composed *discovery.Kinds
	// Ungated are the resources whose providers support no gates.
	Ungated *gates.Ungated
	// Windows take which are in force.
	Windows *windows.Reconciler
	// Unlisted are the kinds that discovery leaves out.
	Unlisted *discovery.Unlisted
	// Rights are those that are missing.
	Rights *status.Rights
	// Adoption reports which kinds were searched for what waits for us.
	Adoption *deletion.Adoption

	// plan is what follows from what was read last; nil before.
	plan *plan
	// done are the plans of which each part was carried out last.
	done map[Request]*plan
	// requests asks for parts of the plan.
	requests chan event.TypedGenericEvent[Request]
	delays   map[Request]*delay

	// composedKnown is false while not all is known of what is composed.
	composedKnown bool
	// guarded are the kinds that had guards last, nil until these are known.
	guarded map[schema.GroupResource]bool
	// stamped are what the webhook is asked about.
	stamped []admission.GovernedKind
	// settings are what policies said of gates.
	settings string
	// rightsCame is true where objects are to be reconciled again for rights that are
	// there by now.
	rightsCame bool
}

// maxRequests is more than are ever asked for at once.
const maxRequests = 64

// Init makes what a Reconciler has for itself, and returns it.
func (c *Reconciler) Init() *Reconciler {
	c.requests = make(chan event.TypedGenericEvent[Request], maxRequests)
	c.done = map[Request]*plan{}
	c.delays = map[Request]*delay{Kinds: {}, Status: {}, Adoption: {}}

	return c
}

// part is how one part of a plan is carried out.
type part struct {
	do func(context.Context, *plan) (reconcile.Result, error)
	// after are the parts of the same plan that come before.
	after []Request
}

func (c *Reconciler) parts() map[Request]part {
	return map[Request]part{
		Guards:   {do: c.applyGuards},
		Watches:  {do: c.watch},
		Webhooks: {do: c.applyWebhooks, after: []Request{Guards, Watches}},
		Status:   {do: c.report, after: []Request{Webhooks}},
		Adoption: {do: c.adopt},
		Prune:    {do: c.prune, after: []Request{Webhooks, Adoption}},
	}
}

// Reconcile carries out one part of the plan. A part that comes after one that is not
// yet done waits for it: it is asked for again then.
func (c *Reconciler) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	if req == Kinds {
		return c.reconcileKinds(ctx)
	}

	p, parts := c.plan, c.parts()
	one := parts[req]

	if p == nil || slices.ContainsFunc(one.after, func(r Request) bool { return c.done[r] != p }) {
		return reconcile.Result{}, nil
	}

	result, err := one.do(ctx, p)
	if err != nil {
		return reconcile.Result{}, err
	}

	was := c.done[req]
	c.done[req] = p

	for next, n := range parts {
		if was != p && slices.Contains(n.after, req) {
			c.request(ctx, next)
		}
	}

	return result, nil
}

// request asks for parts of the plan. At the end nobody takes any.
func (c *Reconciler) request(ctx context.Context, list ...Request) {
	for _, r := range list {
		select {
		case c.requests <- event.TypedGenericEvent[Request]{Object: r}:
		case <-ctx.Done():
		}
	}
}

// kindsOf has the kinds found anew for each event.
func kindsOf[object any]() handler.TypedEventHandler[object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, object) []Request { return []Request{Kinds} })
}

// Controller makes the controller of the configuration.
func (c *Reconciler) Controller(cch cache.Cache, log logr.Logger) (controller.TypedController[Request], error) {
	return object.NewController("configuration", c, controller.TypedOptions[Request]{
		LogConstructor: func(req *Request) logr.Logger {
			if req == nil {
				return log
			}

			return log.WithValues("part", string(*req))
		},
	}, c.sources(cch)...)
}

// sources are all that the configuration follows from.
func (c *Reconciler) sources(cch cache.Cache) []source.TypedSource[Request] {
	specs := predicate.Or(object.SpecChanged(), predicate.LabelChangedPredicate{})

	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	out := []source.TypedSource[Request]{
		source.TypedKind(cch, client.Object(crds), kindsOf[client.Object](), crdPredicate()),
		source.TypedChannel(c.requests, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, r Request) []Request {
			return []Request{r}
		})),
	}

	for _, obj := range []client.Object{&v1alpha1.AllowancePolicy{}, &v1alpha1.UpgradeAllowance{}, &v1alpha1.Enforcement{}} {
		out = append(out, source.TypedKind(cch, obj, kindsOf[client.Object](), specs))
	}

	out = append(out, source.TypedKind(cch, client.Object(&v1alpha1.AllowanceBinding{}), kindsOf[client.Object](), predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, // Only whether there are any matters.
	}))
	out = append(out, watch.Prompted(c.Composed.Prompt, Kinds)...)

	if w := c.Applier.Webhook; w != nil {
		out = append(out, onNewCA(w.Trust))
	}

	return out
}

// crdPredicate passes CRDs that come, change or go. Of metadata alone one
// cannot know when a CRD is established, so its status updates pass as well.
func crdPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}
