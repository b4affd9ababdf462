// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Applied is what the webhook is asked about and what is guarded and watched by now.
type Applied struct {
	// Want is what was asked for.
	Want admission.Config
	// Listed are the kinds that discovery lists, Named those that policies and windows
	// name, Unknown the names of which it lists no kind.
	Listed, Named []kind.Served
	Unknown       []kind.Name
}

// applied is what the configuration set last, with what follows from it; never
// modified.
type applied struct {
	Applied Applied

	grants typecheck.Grants
	// generations are those of the policies and Enforcements.
	generations map[types.UID]int64
}

// includes reports whether it follows from the present generation of an object.
func (a *applied) includes(obj client.Object) bool {
	if a == nil {
		return false
	}

	generation, ok := a.generations[obj.GetUID()]

	return ok && generation == obj.GetGeneration()
}

// Reporter writes the status of policies and Enforcements, each by its name, as the
// configuration has last set it.
type Reporter struct {
	Client  client.Client
	Schemas *Schemas
	// Rights are those that are missing.
	Rights *Rights
	// Parameters finds out whether those of policies can be read.
	Parameters *Parameters
	// Ungated are the resources whose providers support no gates.
	Ungated *gates.Ungated

	applied                atomic.Pointer[applied]
	policies, enforcements chan nameEvent
}

// nameEvent has the objects of some names reconciled.
type nameEvent = event.TypedGenericEvent[[]string]

// Init makes what a Reporter has for itself, and returns it.
func (s *Reporter) Init() *Reporter {
	const maxEvents = 64 // More than the configuration is ahead of a controller that starts.

	s.policies, s.enforcements = make(chan nameEvent, maxEvents), make(chan nameEvent, maxEvents)

	return s
}

// Set takes what is applied by now, and has all policies and Enforcements reconciled.
// It returns false where a schema to check them against is missing.
func (s *Reporter) Set(ctx context.Context, in Applied) (complete bool) {
	s.Parameters.refresh(ctx, paramKinds(in.Want.Policies)) // A kind may have come, or gone.

	others := append(typecheck.EnforcedKinds(in.Want.Enforcements, in.Listed), s.Parameters.served()...)
	others = append(others, typecheck.WindowKinds(in.Want.Windows, in.Named)...)
	complete = s.Schemas.Refresh(ctx, in.Want.Policies, in.Named, others...)

	next := &applied{Applied: in, grants: typecheck.GrantsOf(in.Want.Policies, in.Want.Windows), generations: map[types.UID]int64{}}
	policies := make([]string, 0, len(in.Want.Policies))
	enforcements := make([]string, 0, len(in.Want.Enforcements))

	for i := range in.Want.Policies {
		p := &in.Want.Policies[i]
		next.generations[p.GetUID()] = p.GetGeneration()
		policies = append(policies, p.GetName())
	}

	for i := range in.Want.Enforcements {
		e := &in.Want.Enforcements[i]
		next.generations[e.GetUID()] = e.GetGeneration()
		enforcements = append(enforcements, e.GetName())
	}

	s.applied.Store(next)
	enqueue(ctx, s.policies, policies)
	enqueue(ctx, s.enforcements, enforcements)

	return complete
}

// enqueue has objects reconciled. At the end nobody takes any.
func enqueue(ctx context.Context, to chan<- nameEvent, names []string) {
	if len(names) == 0 {
		return
	}

	select {
	case to <- nameEvent{Object: names}:
	case <-ctx.Done():
	}
}

// newController makes a controller of the objects whose names are received.
func newController(
	name string, r reconcile.Reconciler, names <-chan nameEvent, log logr.Logger, more ...source.Source,
) (controller.Controller, error) {
	return object.NewController(name, r, controller.Options{Logger: log}, append(more, source.TypedChannel(names,
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, list []string) []reconcile.Request {
			out := make([]reconcile.Request, 0, len(list))
			for _, name := range list {
				out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}

			return out
		})))...)
}

// write writes the status of the version of an object that was read. One that is gone
// needs none, and a conflict is tried again silently.
func (s *Reporter) write(ctx context.Context, of string, out, read client.Object) (reconcile.Result, error) {
	err := s.Client.Status().Patch(ctx, out, object.MergeFrom(read))

	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot write the status of %s %q: %w", of, read.GetName(), err)
	}

	return reconcile.Result{}, nil
}

// detailed is the message of a condition of one of our objects, with the command that shows all of it where it is long.
func detailed(cond metav1.Condition, of string, u client.Object) string {
	name := u.GetName()
	if ns := u.GetNamespace(); ns != "" {
		name += " -n " + ns
	}

	return message.Detailed(cond.Message, "kubectl get "+of+" "+name+" -o yaml | kubectl kausality lint -f -")
}
