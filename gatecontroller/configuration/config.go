// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/composed"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/rights"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/webhooks"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
)

const (
	// resolveSoon and resolveEvery are how soon kinds are looked up again that
	// were not served, or without a schema: at first the former, which doubles
	// each time up to the latter. The API server lists a new kind a moment
	// after its CRD says it is served.
	resolveSoon  = 250 * time.Millisecond
	resolveEvery = 10 * time.Second
	// resyncEvery is how often all is looked at though nothing happened.
	resyncEvery = time.Minute
)

// Reconciler keeps webhook configurations, guards and watches in line with
// the policies and kinds there are.
type Reconciler struct {
	Client   client.Client
	Reader   client.Reader
	Resolver *discovery.Resolver
	Watches  *watch.Watches
	Statuses *status.Reporter
	// Shard of the manager; only that without a name configures anything.
	Shard *shard.Shard
	// Gated is true where gates and their guards are switched on.
	Gated bool
	// Now is the clock.
	Now func() time.Time
	// Applier applies webhook configurations and guards, definitions the owners of
	// our CRDs.
	Applier     *webhooks.Applier
	Definitions *Definitions
	// OpenGates are the gates that are.
	OpenGates func() map[schema.GroupKind][]types.NamespacedName
	// Exceptions tell how long those of Enforcements last.
	Exceptions *status.Exceptions
	// Unattended tells of shards that nobody looks after.
	Unattended *shard.Unattended

	// Composed finds what is gated though nobody names it; followed is false
	// while not all of that is known.
	Composed *composed.Kinds
	followed bool
	// guarded are the kinds that had guards last, nil until these are known.
	guarded map[schema.GroupResource]bool
	// usages are the kinds that tell which resource uses which configuration.
	usages []kind.Served
	// Ungated are the resources whose providers support no gates.
	Ungated *gates.Ungated
	// Windows are told which are in force.
	Windows *windows.Reconciler
	// Unlisted are the kinds that discovery leaves out.
	Unlisted *discovery.Unlisted
	// Rights are those that are missing.
	Rights *rights.Rights

	// Adoption tells which kinds were looked through for what waits for us.
	Adoption *deletion.Adoption
	// settings are what policies said of gates.
	settings string
	// asked are the kinds that the webhook is asked about.
	asked []admission.Subject
	// missing are the kinds that nothing served last, and wait is how long it
	// was to be until they are looked up again.
	missing []kind.Name
	wait    time.Duration
}

func (c *Reconciler) read(ctx context.Context) (admission.Config, error) {
	policies := &v1alpha1.AllowancePolicyList{}
	allowances := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, allowances, enforcements} {
		if err := c.Reader.List(ctx, list); err != nil {
			return admission.Config{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	return admission.Config{Policies: policies.Items, Windows: allowances.Items, Enforcements: enforcements.Items}, nil
}

// Reconcile reconciles what follows from all policies, windows and Enforcements;
// the request is empty. What does not depend on a step that failed is done all the
// same, and all errors are returned.
func (c *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// 1. Read what is asked for.
	want, err := c.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	// 2. What depends on no kind.
	errs := []error{c.reconcileUnrelated(ctx, want)}

	// 3. Find the kinds.
	served, err := c.Resolver.Served(ctx)
	if err != nil {
		return reconcile.Result{}, errors.Join(append(errs, err)...)
	}

	behind := c.Unlisted.Set(ctx, served)

	// 4. Guard, watch and stamp them, and report that.
	watched, complete, err := c.reconcileKinds(ctx, want, served)
	errs = append(errs, err)

	// 5. Release objects. Last: what cannot be must not keep what is asked for from being done.
	found, err := c.Adoption.Adopt(ctx, served)
	errs = append(errs, err)

	if watched != nil {
		errs = append(errs, c.Watches.Prune(ctx, *watched, served))
		c.Ungated.Keep(*watched)
	}

	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}

	_, missing := kind.Named(served, kind.Names(want.Policies, want.Windows))

	return reconcile.Result{RequeueAfter: c.requeueAfter(missing, complete && found && c.followed && !behind && !c.Rights.Missing())}, nil
}

// reconcileKinds has the kinds that are governed guarded, watched and stamped, and
// then reports that what asked for it is in force. It returns the kinds that are
// watched, nil where they are not known, and false where schemas are missing.
func (c *Reconciler) reconcileKinds(
	ctx context.Context, want admission.Config, served []kind.Served,
) (watched *[]kind.Served, complete bool, err error) {
	names := kind.Names(want.Policies, want.Windows)
	kinds, _ := kind.Named(served, names)
	enforced := admission.Covered(want.Enforcements, served)

	if err := c.describe(ctx, kinds, enforced); err != nil {
		return nil, false, err
	}

	governed, err := c.govern(ctx, want, served, kinds, enforced)
	if err != nil {
		return nil, false, err
	}

	listed := c.Unlisted.Without(served)
	_, unknown := kind.Named(listed, names)
	complete, err = c.publish(ctx, want, listed, kinds, unknown)

	return &governed, complete, err
}

// enqueueOpenGates has open gates looked at again when a policy says something else of
// gates.
func (c *Reconciler) enqueueOpenGates(policies []v1alpha1.AllowancePolicy) error {
	now, err := fingerprint(policies)
	if err != nil {
		return err
	}

	if now != c.settings {
		c.Watches.Enqueue(c.OpenGates())
	}

	c.settings = now

	return nil
}

// describe finds out which kinds are managed resources.
func (c *Reconciler) describe(ctx context.Context, kinds []kind.Served, enforced []admission.Enforced) error {
	if err := c.Resolver.Describe(ctx, kinds); err != nil {
		return err
	}

	for _, e := range enforced {
		if err := c.Resolver.Describe(ctx, e.Kinds); err != nil {
			return err
		}
	}

	return nil
}

// govern keeps guards, watches and webhooks. It returns the kinds that are to be
// watched.
func (c *Reconciler) govern(
	ctx context.Context, want admission.Config, served, kinds []kind.Served, enforced []admission.Enforced,
) ([]kind.Served, error) {
	named := parentKinds(want, kinds)

	for _, e := range enforced {
		for _, k := range e.Kinds {
			if k.Gated() && !slices.Contains(named, k) {
				named = append(named, k)
			}
		}
	}

	gated, watched, err := c.findGated(ctx, served, named)
	if err != nil {
		return nil, err
	}

	if c.usages, err = c.Resolver.Usages(ctx, served); err != nil {
		return nil, err
	}

	errs := []error{c.guard(ctx, gated)}
	came := c.Rights.Refresh(ctx, want, served, kind.Union(watched, c.Composed.Parents(served)))
	errs = append(errs, c.Watches.Run(ctx, c.Rights.Readable(ctx, watched)))

	// What failed for want of a right would be tried again later and later.
	if came {
		errs = append(errs, c.Watches.EnqueueAll(ctx))
	}

	errs = append(errs, c.enqueueOpenGates(want.Policies))

	// What is neither guarded nor watched is not to be stamped.
	if err := errors.Join(errs...); err != nil || !c.Shard.Main() {
		return watched, err
	}

	asked := admission.Awaited(admission.Subjects(want, kind.Union(kinds, gated), enforced), c.asked, kind.Names(want.Policies, want.Windows))
	if err := c.Applier.ApplyWebhooks(ctx, asked, enforced); err != nil {
		return nil, err
	}

	c.asked = asked

	return watched, nil
}

// guard keeps the guards: those of our own CRDs wherever this manager keeps
// configurations, and those of managed resources where it moves their gates, too.
func (c *Reconciler) guard(ctx context.Context, gated []kind.Served) error {
	if !c.Shard.Main() {
		return nil
	}

	list := admission.DefinitionGuards()
	if c.Gated {
		list = append(list, c.Applier.Hooks.Guards(gated, c.usages)...)
	}

	return c.Applier.ApplyGuards(ctx, list)
}

// parentKinds are the kinds of which something may follow, and those that have
// gates. Nobody needs to look after the others.
func parentKinds(want admission.Config, kinds []kind.Served) []kind.Served {
	var out []kind.Served

	for _, k := range kinds {
		parent := slices.ContainsFunc(want.Policies, func(p v1alpha1.AllowancePolicy) bool {
			return kind.Name{Group: p.Spec.Match.APIGroup, Kind: p.Spec.Match.Kind}.Matches(k.GVK)
		})

		if parent || k.Gated() {
			out = append(out, k)
		}
	}

	return out
}

// requeueAfter says when to look again.
func (c *Reconciler) requeueAfter(missing []kind.Name, complete bool) time.Duration {
	known := slices.Equal(missing, c.missing)
	c.missing = missing

	switch {
	case len(missing) == 0 && complete:
		c.wait = 0

		return resyncEvery
	case !known || c.wait == 0:
		c.wait = resolveSoon
	default:
		c.wait = min(2*c.wait, resolveEvery)
	}

	return c.wait
}

// Controller makes the controller of the configuration, which runs, on every change that matters.
func (c *Reconciler) Controller(cch cache.Cache, log logr.Logger) (controller.Controller, error) {
	skip := true

	ctl, err := controller.NewUnmanaged("configuration", controller.Options{Reconciler: c, SkipNameValidation: &skip, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("cannot make the configuration controller: %w", err)
	}

	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	specs := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	for _, obj := range []client.Object{&v1alpha1.AllowancePolicy{}, &v1alpha1.UpgradeAllowance{}, &v1alpha1.Enforcement{}} {
		if err := ctl.Watch(source.Kind(cch, obj, one, specs)); err != nil {
			return nil, fmt.Errorf("cannot watch our own kinds: %w", err)
		}
	}

	if err := ctl.Watch(source.Kind(cch, client.Object(crds), one, crdPredicate())); err != nil {
		return nil, fmt.Errorf("cannot watch CRDs: %w", err)
	}

	if err := ctl.Watch(source.Func(c.Composed.Prompt.Source)); err != nil {
		return nil, fmt.Errorf("cannot watch what is composed: %w", err)
	}

	if err := ctl.Watch(source.Kind(cch, client.Object(shard.Namespace()), one, shard.LabelChanged())); err != nil {
		return nil, fmt.Errorf("cannot watch namespaces: %w", err)
	}

	if c.Applier.Webhook != nil {
		if err := ctl.Watch(source.Func(c.onNewCA)); err != nil {
			return nil, fmt.Errorf("cannot watch certificates: %w", err)
		}
	}

	return ctl, nil
}

// onNewCA asks for the configurations to be kept when their CA changes.
func (c *Reconciler) onNewCA(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.Applier.Webhook.Trust.Changed():
				queue.Add(reconcile.Request{})
			}
		}
	}()

	return nil
}

// crdPredicate passes CRDs that come, change or go. Of metadata alone one
// cannot tell when a CRD is established, so its status updates pass as well.
func crdPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// publish reports which policies, windows and Enforcements are in force. False where kinds
// are to be looked at again soon, for type checking.
func (c *Reconciler) publish(
	ctx context.Context, want admission.Config, served, kinds []kind.Served, missing []kind.Name,
) (complete bool, err error) {
	if !c.Shard.Main() {
		return true, nil
	}

	complete = c.Statuses.Schemas.Refresh(ctx, want.Policies, kinds, status.AllEnforcedKinds(want.Enforcements, served)...)
	err = c.Statuses.ReportAll(ctx, want, served, kinds, missing)

	c.Windows.SetReadiness(ctx, want.Windows, missing, func(u *v1alpha1.UpgradeAllowance) string {
		return c.Rights.Message(right.OfWindow(u, kind.ForRights(served)))
	})

	return complete, err
}

// reconcileUnrelated reconciles what depends on no kind: the labels by which functions
// find policies, the owners of our CRDs, exceptions that end and shards that no
// manager runs for. An error of one stops no other.
func (c *Reconciler) reconcileUnrelated(ctx context.Context, want admission.Config) error {
	if !c.Shard.Main() {
		return nil
	}

	c.Exceptions.Set(want.Enforcements, c.Now())

	return errors.Join(c.Statuses.Label(ctx, want.Policies, want.Windows), c.Definitions.addOwners(ctx), c.Unattended.Check(ctx))
}
