// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

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
	"github.com/kausality-io/kausality-crossplane/engine/right"
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

// configuration keeps webhook configurations, guards and watches in line with
// the policies and kinds there are.
type configuration struct {
	client   client.Client
	reader   client.Reader
	resolver *resolver
	watches  *watches
	statuses *statuses
	// shard of the manager; only that without a name configures anything.
	shard *Shard
	// gated is true where gates and their guards are switched on.
	gated bool
	// now is the clock.
	now func() time.Time
	// applier applies webhook configurations and guards, definitions the owners of
	// our CRDs.
	applier     *applier
	definitions *definitions
	// open are the gates that are.
	open func() map[schema.GroupKind][]types.NamespacedName
	// exceptions tell how long those of Enforcements last.
	exceptions *exceptions
	// unattended tells of shards that nobody looks after.
	unattended *unattended

	// composed finds what is gated though nobody names it; followed is false
	// while not all of that is known.
	composed *composed
	followed bool
	// guarded are the kinds that had guards last, nil until these are known.
	guarded map[schema.GroupResource]bool
	// usages are the kinds that tell which resource uses which configuration.
	usages []servedKind
	// ungated are the resources whose providers support no gates.
	ungated *ungated
	// windows are told which are in force.
	windows *windows
	// unlisted are the kinds that discovery leaves out.
	unlisted *unlisted
	// rights are those that are missing.
	rights *rights

	// adopted tells which kinds were looked through for what waits for us.
	adopted *adoption
	// settings are what policies said of gates.
	settings string
	// asked are the kinds that the webhook is asked about.
	asked []subject
	// missing are the kinds that nothing served last, and wait is how long it
	// was to be until they are looked up again.
	missing []kindName
	wait    time.Duration
}

func (c *configuration) read(ctx context.Context) (wanted, error) {
	policies := &v1alpha1.AllowancePolicyList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, windows, enforcements} {
		if err := c.reader.List(ctx, list); err != nil {
			return wanted{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	return wanted{policies: policies.Items, windows: windows.Items, enforcements: enforcements.Items}, nil
}

// Reconcile does all of it at once; the request says nothing.
func (c *configuration) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// 1. Read what is asked for.
	want, err := c.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	// 2. Find the kinds.
	served, err := c.resolver.served(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	behind := c.unlisted.set(ctx, served)
	kinds, missing := named(served, names(want.policies, want.windows))
	enforced := covered(want.enforcements, served)

	if err := c.describe(ctx, kinds, enforced); err != nil {
		return reconcile.Result{}, err
	}

	// 3. Guard and watch them before the webhook stamps them.
	watched, err := c.govern(ctx, want, served, kinds, enforced)
	if err != nil {
		return reconcile.Result{}, err
	}

	// 4. Let functions find the policies, and say so.
	listed := c.unlisted.without(served)
	_, unknown := named(listed, names(want.policies, want.windows))
	complete, unsaid := c.publish(ctx, want, listed, kinds, unknown)

	// 5. Let go. Last: what cannot be must not keep what is asked for from being done.
	found, unfound := c.adopted.adopt(ctx, served)
	kept := c.watches.keep(ctx, watched, served)

	c.ungated.keep(watched)

	if err := errors.Join(unsaid, unfound, kept, c.keepDefinitions(ctx)); err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: c.again(missing, complete && found && c.followed && !behind && !c.rights.missing())}, nil
}

// reopen has open gates looked at again when a policy says something else of
// gates.
func (c *configuration) reopen(policies []v1alpha1.AllowancePolicy) error {
	now, err := fingerprint(policies)
	if err != nil {
		return err
	}

	if now != c.settings {
		c.watches.again(c.open())
	}

	c.settings = now

	return nil
}

// describe finds out which kinds are managed resources.
func (c *configuration) describe(ctx context.Context, kinds []servedKind, enforced []enforced) error {
	if err := c.resolver.describe(ctx, kinds); err != nil {
		return err
	}

	for _, e := range enforced {
		if err := c.resolver.describe(ctx, e.kinds); err != nil {
			return err
		}
	}

	return nil
}

// govern keeps guards, watches and webhooks. It returns the kinds that are to be
// watched.
func (c *configuration) govern(ctx context.Context, want wanted, served, kinds []servedKind, enforced []enforced) ([]servedKind, error) {
	named := parentKinds(want, kinds)

	for _, e := range enforced {
		for _, k := range e.kinds {
			if k.gated() && !slices.Contains(named, k) {
				named = append(named, k)
			}
		}
	}

	gated, watched, err := c.follow(ctx, served, named)
	if err != nil {
		return nil, err
	}

	if c.usages, err = c.resolver.usages(ctx, served); err != nil {
		return nil, err
	}

	if err := c.guard(ctx, gated); err != nil {
		return nil, err
	}

	came := c.rights.look(ctx, want, served, join(watched, c.composed.parents(served)))

	if err := c.watches.run(ctx, c.rights.readable(ctx, watched)); err != nil {
		return nil, err
	}

	// What failed for want of a right would be tried again later and later.
	if came {
		if err := c.watches.againAll(ctx); err != nil {
			return nil, err
		}
	}

	if err := c.reopen(want.policies); err != nil || !c.shard.main() {
		return watched, err
	}

	asked := awaited(subjects(want, join(kinds, gated), enforced), c.asked, names(want.policies, want.windows))
	if err := c.applier.applyWebhooks(ctx, asked, enforced); err != nil {
		return nil, err
	}

	c.asked = asked

	return watched, nil
}

// guard keeps the guards: those of our own CRDs wherever this manager keeps
// configurations, and those of managed resources where it moves their gates, too.
func (c *configuration) guard(ctx context.Context, gated []servedKind) error {
	if !c.shard.main() {
		return nil
	}

	list := definitionGuards()
	if c.gated {
		list = append(list, c.applier.hooks.guards(gated, c.usages)...)
	}

	return c.applier.applyGuards(ctx, list)
}

// parentKinds are the kinds of which something may follow, and those that have
// gates. Nobody needs to look after the others.
func parentKinds(want wanted, kinds []servedKind) []servedKind {
	var out []servedKind

	for _, k := range kinds {
		parent := slices.ContainsFunc(want.policies, func(p v1alpha1.AllowancePolicy) bool {
			return kindName{group: p.Spec.Match.APIGroup, kind: p.Spec.Match.Kind}.matches(k.gvk)
		})

		if parent || k.gated() {
			out = append(out, k)
		}
	}

	return out
}

// again says when to look again.
func (c *configuration) again(missing []kindName, complete bool) time.Duration {
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

// setup runs the configuration reconciler, on every change that matters.
func (c *configuration) controller(cch cache.Cache, log logr.Logger) (controller.Controller, error) {
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

	if err := ctl.Watch(source.Func(c.composed.prompt.run)); err != nil {
		return nil, fmt.Errorf("cannot watch what is composed: %w", err)
	}

	if err := ctl.Watch(source.Kind(cch, client.Object(namespaceKind()), one, relabelled())); err != nil {
		return nil, fmt.Errorf("cannot watch namespaces: %w", err)
	}

	if c.applier.webhook != nil {
		if err := ctl.Watch(source.Func(c.onNewCA)); err != nil {
			return nil, fmt.Errorf("cannot watch certificates: %w", err)
		}
	}

	return ctl, nil
}

// onNewCA asks for the configurations to be kept when their CA changes.
func (c *configuration) onNewCA(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.applier.webhook.Trust.Changed():
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

// publish tells of what there is: labels, statuses, exceptions. False where kinds
// are to be looked at again soon, for type checking.
func (c *configuration) publish(
	ctx context.Context, want wanted, served, kinds []servedKind, missing []kindName,
) (complete bool, err error) {
	if !c.shard.main() {
		return true, nil
	}

	errs := []error{c.statuses.label(ctx, want.policies, want.windows)}
	complete = c.statuses.schemas.refresh(ctx, want.policies, kinds, allEnforcedKinds(want.enforcements, served)...)
	errs = append(errs, c.statuses.reportAll(ctx, want, served, kinds, missing))

	c.exceptions.set(want.enforcements, c.now())
	c.windows.inForce(ctx, want.windows, missing, func(u *v1alpha1.UpgradeAllowance) string {
		return c.rights.of(right.OfWindow(u, rightKinds(served)))
	})

	return complete, errors.Join(append(errs, c.unattended.look(ctx))...)
}

// keepDefinitions has our CRDs outlive the package that brought them.
func (c *configuration) keepDefinitions(ctx context.Context) error {
	if !c.shard.main() {
		return nil
	}

	return c.definitions.ownDefinitions(ctx)
}
