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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/approval"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/configuration"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/report"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/internal/recorder"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Options of the controllers.
type Options struct {
	// Namespace we run in.
	Namespace string
	// Settings name who is who.
	Settings request.Settings
	// Gates switches the gates and their guards on.
	Gates bool
	// Gate holds what gates are moved by.
	Gate gate.Options
	// Functions are the names that the composition function is installed under.
	Functions []string
	// Webhook to configure; nil for none.
	Webhook *configuration.Webhook
	// Access reports what we may do; nil where we may do all.
	Access *access.Access
	// Inputs are what deletions and approved edits are judged by.
	Inputs *current.Inputs
	// Writes is how many may be under way at once.
	Writes int
	// Now is the clock.
	Now func() time.Time
	// Reports is how often Reports of OpenReports are brought up to date; zero for never.
	Reports time.Duration
	// ShowForeign shows, in PendingChanges, values of objects in other namespaces, too.
	ShowForeign bool
	// Rights say who may approve changes; nil where that cannot be asked.
	Rights approval.Rights
	// Used hears of each use of a window that opened a gate by itself; nil for
	// nobody.
	Used func(v1alpha1.GateWindow)
}

// remembering is a manager whose client remembers what it wrote.
type remembering struct {
	ctrl.Manager

	client *object.Client
}

// GetClient returns the one client of all controllers.
func (m remembering) GetClient() client.Client { return m.client }

// Setup adds the controllers to a manager.
func Setup(from ctrl.Manager, opts Options) error {
	mgr := remembering{from, object.NewClient(from.GetClient(), opts.Writes, opts.Now)}

	disco, err := kubediscovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("cannot make a discovery client: %w", err)
	}

	recorded, err := newRecorder(mgr)
	if err != nil {
		return err
	}

	exceptions, err := status.NewExceptions(metrics.Registry, mgr.GetCache(), recorded, opts.Now)
	if err != nil {
		return err
	}

	w := watch.NewWatches(mgr.GetCache(), opts.Now)
	composedKinds := &discovery.Kinds{Functions: opts.Functions, Watches: w, Prompt: watch.NewPrompt()}

	g, held, err := newObjects(mgr, opts, disco, recorded, composedKinds)
	if err != nil {
		return err
	}

	c := newConfiguration(mgr, opts, disco, composedKinds, g)

	if err := register(c.Unlisted, c.Rights, &status.NotReady{Reader: mgr.GetCache()}); err != nil {
		return err
	}

	makers := append(optional(mgr, opts, composedKinds, g, held), exceptions,
		status.Policies{Reporter: c.Statuses}, status.Enforcements{Reporter: c.Statuses}, status.Bindings{
			Reporter: c.Statuses, Initiates: func(user string) bool { return opts.Settings.InitiatesByBinding(policy.User{Name: user}) },
			GuardedSince: func() (time.Time, bool) { return c.Applier.GuardedSince(v1alpha1.NameBindGuard) },
		},
		status.LabelPolicies(mgr.GetClient()), status.LabelWindows(mgr.GetClient()),
		&configuration.DefinitionOwner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: opts.Namespace})

	leads, err := newLeading(mgr, c, held, makers)
	if err != nil {
		return err
	}

	if err := c.Windows.SetupWithManager(mgr); err != nil {
		return err
	}

	if err := mgr.Add(leads); err != nil {
		return fmt.Errorf("cannot add the controllers: %w", err)
	}

	return nil
}

// newRecorder makes the recorder of events, which runs with the manager.
func newRecorder(mgr ctrl.Manager) (events.EventRecorder, error) {
	recorded, err := recorder.New(metrics.Registry, mgr.GetEventRecorder(recorder.Name), mgr.GetScheme())
	if err != nil {
		return nil, err
	}

	if err := mgr.Add(recorded); err != nil {
		return nil, fmt.Errorf("cannot add the recorder of events: %w", err)
	}

	return recorded, nil
}

// optional makes the controllers that can be switched off: of Reports of OpenReports, and of
// ChangeApprovals that are left.
func optional(mgr ctrl.Manager, opts Options, composedKinds *discovery.Kinds, g *gates.Mover, held *pending.Reconciler) []maker {
	var out []maker

	if opts.Reports > 0 {
		out = append(out, &report.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Reader: mgr.GetCache(), Mapper: mgr.GetRESTMapper(),
			Watched: composedKinds.Watches, Composed: composedKinds, Policies: g.Policies, Gate: opts.Gate,
			Every: opts.Reports, Now: opts.Now,
		})
	}

	if s, ok := held.Approvals.(*approval.Settler); ok {
		out = append(out, approval.Leftovers{Settler: s})
	}

	return out
}

// settler makes what carries out what becomes of ChangeApprovals; nil where nobody can be asked who
// may approve.
func settler(
	mgr ctrl.Manager, opts Options, by *judging.Judge, composedKinds *discovery.Kinds, recorded events.EventRecorder,
) (*approval.Settler, error) {
	if opts.Rights == nil {
		return nil, nil //nolint:nilnil // As said above.
	}

	if err := approval.Index(mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}

	counts, err := approval.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}

	return &approval.Settler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Rights: opts.Rights, Judge: by,
		Events: recorded, Metrics: counts, Now: opts.Now,
		Objects: approval.Reader{
			Cache: mgr.GetClient(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Known: composedKinds.Watches.Known,
		},
	}, nil
}

// newPending makes the controller of PendingChanges.
func newPending(
	mgr ctrl.Manager, opts Options, by *judging.Judge, composedKinds *discovery.Kinds, recorded events.EventRecorder,
) (*pending.Reconciler, error) {
	m, err := pending.NewMetrics(metrics.Registry, opts.Now)
	if err != nil {
		return nil, err
	}

	approvals, err := settler(mgr, opts, by, composedKinds, recorded)
	if err != nil {
		return nil, err
	}

	out := &pending.Reconciler{
		Client: mgr.GetClient(), Composes: composedKinds.Composes,
		Objects: pending.Objects{
			Cache: mgr.GetClient(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Known: composedKinds.Watches.Known,
		},
		Namespace: opts.Namespace, ShowForeign: opts.ShowForeign, WithoutDrift: opts.Gate.WithoutDrift, Now: opts.Now,
	}
	if approvals != nil {
		out.Approvals = approvals
	}

	return out.Init(m), nil
}

// newConfiguration makes the reconciler of what results from all policies together.
func newConfiguration(
	mgr ctrl.Manager, opts Options, disco kubediscovery.DiscoveryInterface, composedKinds *discovery.Kinds, g *gates.Mover,
) *configuration.Reconciler {
	c := (&configuration.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetCache(), Watches: composedKinds.Watches, Gated: opts.Gates,
		OpenGates: g.Ledger.OpenGates,
		Resolver: &discovery.Resolver{
			Discovery: disco, Crds: mgr.GetCache(), Live: mgr.GetAPIReader(), Described: map[string]discovery.Shape{},
		},
		Composed: composedKinds, Ungated: g.Ungated,
		Windows: windows.New(mgr, opts.Now), Unlisted: discovery.NewUnlisted(opts.Now), Rights: status.NewRights(opts.Access),
		Adoption: &deletion.Adoption{Live: mgr.GetAPIReader(), Watches: composedKinds.Watches, Access: opts.Access},
		Applier: &configuration.Applier{Client: mgr.GetClient(), Webhook: opts.Webhook, Hooks: admission.Options{
			Namespace: opts.Namespace, Manager: opts.Settings.Manager, Crossplane: opts.Settings.Crossplane,
		}},
	}).Init()
	c.Statuses = (&status.Reporter{
		Client: mgr.GetClient(), Schemas: &status.Schemas{Discovery: disco}, Rights: c.Rights, Ungated: g.Ungated,
		Parameters: &status.Parameters{
			Client: mgr.GetClient(), Discovery: disco, Access: opts.Access, Crossplane: opts.Settings.Crossplane,
		},
	}).Init()

	return c
}

// newObjects makes what reconciles objects, one kind at a time as these are
// watched. It returns what moves their gates, and what lists what is held of them.
func newObjects(
	mgr remembering, opts Options, disco kubediscovery.DiscoveryInterface, recorded events.EventRecorder, composedKinds *discovery.Kinds,
) (*gates.Mover, *pending.Reconciler, error) {
	by := &judging.Judge{
		Inputs: opts.Inputs, Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(),
		Settings: opts.Settings, Now: opts.Now,
		Parameters: parameter.NewReader(mgr.GetAPIReader(), mgr.GetRESTMapper(), opts.Access, opts.Now),
		Versions:   served.NewVersions(disco.RESTClient(), opts.Now),
	}

	held, err := newPending(mgr, opts, by, composedKinds, recorded)
	if err != nil {
		return nil, nil, err
	}

	compiled, w := policy.NewCache(), composedKinds.Watches

	book, err := gates.NewLedger(metrics.Registry, opts.Now)
	if err != nil {
		return nil, nil, err
	}

	failed := judging.NewExpressions()
	o := &deletion.Owners{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Watches: w, Access: opts.Access, Failed: failed,
		Ungoverned: composedKinds.Ungoverned,
		Judge:      by,
	}
	g := &gates.Mover{
		Client: mgr.client.First(), Events: recorded, Ungated: gates.NewUngated(composedKinds.Prompt), Opts: opts.Gate, Now: opts.Now,
		Policies: &gates.PolicyGates{Reader: mgr.GetCache(), Compiled: compiled}, Ledger: book,
		Openers: gates.Openers{Reader: mgr.GetCache()}, Used: opts.Used, Failed: failed, Gated: w.Named,
	}

	gateless := newGateless(mgr, opts, recorded, composedKinds)
	if err := register(w, g.Ungated, failed.Failed, gateless); err != nil {
		return nil, nil, err
	}

	e, err := deletion.NewLeftovers(metrics.Registry, mgr.GetClient(), mgr.GetAPIReader(), opts.Namespace, opts.Gate, opts.Now)
	if err != nil {
		return nil, nil, err
	}

	keeps := &gates.Parents{Writer: object.Writer{Client: mgr.GetClient()}, Unused: gates.NewUnused(opts.Now)}
	o.Leftovers, g.LeftBehind = e, e.Replaced
	w.Release, w.Dropped = o.ReleaseAll, func(gk schema.GroupKind) { book.Forget(gk); gateless.Drop(gk) }
	w.Object = func(gvk schema.GroupVersionKind) reconcile.Reconciler {
		if gvk.GroupKind() == resource.RevisionKind() {
			return &discovery.Revisions{Kinds: composedKinds, Gvk: gvk, Reader: mgr.GetCache()}
		}

		return &gates.Reconciler{
			Gvk: gvk, Reader: mgr.GetClient(), Gates: g, Parents: keeps,
			Owners: o, Leftovers: e, Composed: composedKinds, Gateless: gateless, Pending: held, Gated: opts.Gates,
		}
	}

	return g, held, nil
}

// newGateless makes what tells of managed resources without a gate.
func newGateless(mgr remembering, opts Options, recorded events.EventRecorder, composedKinds *discovery.Kinds) *gates.Gateless {
	objects := approval.Reader{
		Cache: mgr.GetClient(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Known: composedKinds.Watches.Known,
	}

	return (&gates.Gateless{Composed: composedKinds, Events: recorded, Now: opts.Now, Read: objects.Read}).Init()
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
