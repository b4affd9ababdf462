// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubediscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
)

// Options of the controllers.
type Options struct {
	// Namespace we run in.
	Namespace string
	// Settings name who is who.
	Settings decision.Settings
	// Gates switches the gates and their guards on.
	Gates bool
	// Gate holds what gates are moved by.
	Gate gate.Options
	// Functions are the names that the composition function is installed under.
	Functions []string
	// Webhook to configure; nil for none.
	Webhook *Webhook
	// Shard is what is looked after. Only that without a name configures
	// anything.
	Shard *Shard
	// Access tells what we may do; nil where we may do all.
	Access *access.Access
	// Now is the clock.
	Now func() time.Time
	// Used is told of each use of a window that opened a gate by itself; nil for
	// nobody.
	Used func(v1alpha1.GateWindow)
}

// Setup adds the controllers to a manager.
func Setup(mgr ctrl.Manager, opts Options) error {
	disco, err := kubediscovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("cannot make a discovery client: %w", err)
	}

	told, err := recorder.New(metrics.Registry, mgr.GetEventRecorder("kausality"), mgr.GetScheme())
	if err != nil {
		return err
	}

	if err := mgr.Add(told); err != nil {
		return fmt.Errorf("cannot add the recorder of events: %w", err)
	}

	until, err := newExceptions(metrics.Registry, told)
	if err != nil {
		return err
	}

	alone, err := newUnattended(metrics.Registry, opts.Shard, mgr.GetAPIReader(), told, opts.Namespace, opts.Now)
	if err != nil {
		return err
	}

	w := newWatches(mgr.GetCache(), opts.Now)
	follows := &composed{functions: opts.Functions, watches: w, prompt: newPrompt()}

	g, err := newObjects(mgr, opts, told, follows)
	if err != nil {
		return err
	}

	c := &configuration{
		client: mgr.GetClient(), reader: mgr.GetCache(), watches: w, shard: opts.Shard, gated: opts.Gates, now: opts.Now, open: g.ledger.gates,
		resolver:   &resolver{discovery: disco, crds: mgr.GetCache(), live: mgr.GetAPIReader(), described: map[string]shape{}},
		exceptions: until, unattended: alone, composed: follows, ungated: g.ungated,
		windows: newWindows(mgr, opts.Now), unlisted: newUnlisted(opts.Now), rights: newRights(opts.Access),
		adopted:     &adoption{live: mgr.GetAPIReader(), watches: w, access: opts.Access},
		definitions: &definitions{client: mgr.GetClient(), reader: mgr.GetCache(), live: mgr.GetAPIReader(), namespace: opts.Namespace},
		applier: &applier{client: mgr.GetClient(), webhook: opts.Webhook, hooks: hooks{
			namespace: opts.Namespace, manager: opts.Settings.Manager, crossplane: opts.Settings.Crossplane,
		}},
	}
	c.statuses = &statuses{client: mgr.GetClient(), schemas: &schemas{discovery: disco}, rights: c.rights, ungated: g.ungated}

	if err := register(c.unlisted, c.rights, &notReady{reader: mgr.GetCache()}); err != nil {
		return err
	}

	one, err := newLeading(mgr, opts.Shard, c)
	if err != nil {
		return err
	}

	if opts.Shard.main() {
		if err := c.windows.add(mgr); err != nil {
			return err
		}
	}

	if err := mgr.Add(one); err != nil {
		return fmt.Errorf("cannot add the controllers: %w", err)
	}

	return nil
}

// newObjects makes what looks after objects, one kind at a time as these are
// watched. It returns what moves their gates.
func newObjects(mgr ctrl.Manager, opts Options, told events.EventRecorder, follows *composed) (*gates, error) {
	compiled, w := policy.NewCache(), follows.watches

	book, err := newLedger(metrics.Registry)
	if err != nil {
		return nil, err
	}

	failed := newExpressions()
	objects := whole{cached: mgr.GetCache(), live: mgr.GetAPIReader()}
	o := &owners{
		writer: writer{client: mgr.GetClient()}, live: mgr.GetAPIReader(), objects: objects, events: told, watches: w, access: opts.Access, failed: failed,
		ungoverned: follows.ungoverned,
		deletions: &deletions{
			reader: mgr.GetCache(), live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), compiled: inforce.NewCache(),
			settings: opts.Settings, now: opts.Now,
		},
	}
	g := &gates{
		client: mgr.GetClient(), events: told, ungated: newUngated(follows.prompt), opts: opts.Gate, now: opts.Now,
		policies: &policyGates{reader: mgr.GetCache(), compiled: compiled}, ledger: book,
		openers: openers{reader: mgr.GetCache()}, used: opts.Used, failed: failed,
	}

	if err := register(w, g.ungated, failed.failed); err != nil {
		return nil, err
	}

	e, err := newEnds(metrics.Registry, mgr.GetClient(), mgr.GetAPIReader(), told, opts.Namespace, opts.Gate, opts.Now)
	if err != nil {
		return nil, err
	}

	keeps := &parents{client: mgr.GetClient(), unused: newUnused(opts.Now)}
	o.ends = e
	w.release, w.dropped = o.releaseAll, book.forget
	w.object = func(gvk schema.GroupVersionKind) reconcile.Reconciler {
		if gvk.GroupKind() == resource.RevisionKind() {
			return &revisions{composed: follows, gvk: gvk, reader: mgr.GetCache()}
		}

		return &objectReconciler{
			gvk: gvk, reader: objects, shard: opts.Shard, gates: g, parents: keeps,
			owners: o, ends: e, composed: follows, gated: opts.Gates,
		}
	}

	return g, nil
}

// register makes metrics visible.
func register(collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	return nil
}
