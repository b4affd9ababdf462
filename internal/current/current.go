// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package current has what is in force now, as informers know it, compiled when it changes
// and not when it is needed.
package current

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
)

// Inputs are what decisions are made by: the policies, bindings, windows and Enforcements
// there are. They are safe for concurrent use.
type Inputs struct {
	// Live reads from the API server while the informers have not heard of it for
	// long; nil to go by these all the same.
	Live client.Reader

	reader    client.Reader
	informers []cache.Informer
	synced    []toolscache.InformerSynced
	compiled  *inforce.Cache

	mu      sync.Mutex
	stale   atomic.Bool
	current atomic.Pointer[Snapshot]
	// live is what was read live, and liveAt when.
	live   *Snapshot
	liveAt time.Time
}

// Snapshot is what is in force at a moment; never modified.
type Snapshot struct {
	Set *inforce.Set

	// Objects that it was compiled of.
	Objects inforce.Objects
}

// Of makes Inputs of what a reader lists when they are first asked, and anew when it is said
// that something changed.
func Of(reader client.Reader) *Inputs {
	in := &Inputs{reader: reader, compiled: inforce.NewCache()}
	in.stale.Store(true)

	return in
}

// Following makes Inputs that follow the informers of a cache, which starts later.
func Following(ctx context.Context, c cache.Cache) (*Inputs, error) {
	in := Of(c)

	for _, kind := range []struct {
		object client.Object
		status bool
	}{
		{&v1alpha1.AllowancePolicy{}, false},
		{&v1alpha1.AllowanceBinding{}, false},
		{&v1alpha1.Enforcement{}, false},
		{&v1alpha1.UpgradeAllowance{}, true}, // Active or not is in its status.
	} {
		informer, err := c.GetInformer(ctx, kind.object)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind.object, err)
		}

		registration, err := informer.AddEventHandler(in.handler(kind.status))
		if err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind.object, err)
		}

		in.synced = append(in.synced, registration.HasSynced)
		in.informers = append(in.informers, informer)
	}

	return in, nil
}

// errNotSynced is the cause while what is decided by was not read once.
var errNotSynced = errors.New("policies, bindings, windows and Enforcements are not read yet")

// Ready is a health check: an error until everything was read once. Other kinds
// do not matter to it, or one that cannot be listed would stop them all.
func (in *Inputs) Ready(*http.Request) error {
	if slices.ContainsFunc(in.synced, func(synced toolscache.InformerSynced) bool { return !synced() }) {
		return errNotSynced
	}

	return nil
}

// Changed has what is in force read anew.
func (in *Inputs) Changed() { in.stale.Store(true) }

// handler notes that something changed; of most kinds the status does not
// matter. What was deleted and made again is an update where the watch missed that.
func (in *Inputs) handler(status bool) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { in.stale.Store(true) },
		DeleteFunc: func(any) { in.stale.Store(true) },
		UpdateFunc: func(old, obj any) {
			was, _ := old.(client.Object)
			is, _ := obj.(client.Object)

			if status || was == nil || is == nil || was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() {
				in.stale.Store(true)
			}
		},
	}
}

// liveFor is how long what was read live is good for.
const liveFor = 2 * time.Second

// readLive reads what there is from the API server, for the informers may be behind.
func (in *Inputs) readLive(ctx context.Context) (*Snapshot, error) {
	in.mu.Lock()
	defer in.mu.Unlock()

	if in.live != nil && time.Since(in.liveAt) < liveFor {
		return in.live, nil
	}

	start := time.Now()

	now, err := in.read(ctx, in.Live)
	if err != nil {
		return nil, fmt.Errorf("nothing was heard of the API server for long: %w", err)
	}

	in.live, in.liveAt = now, start

	return now, nil
}

// Get returns what there is now.
func (in *Inputs) Get(ctx context.Context) (*Snapshot, error) {
	if in.Live != nil && slices.ContainsFunc(in.informers, func(i cache.Informer) bool { return Stale(i) }) {
		return in.readLive(ctx)
	}

	if now := in.current.Load(); now != nil && !in.stale.Load() {
		return now, nil
	}

	in.mu.Lock()
	defer in.mu.Unlock()

	if now := in.current.Load(); now != nil && !in.stale.Load() {
		return now, nil
	}

	in.stale.Store(false) // First: what changes from here on is not in it.

	now, err := in.read(ctx, in.reader)
	if err != nil {
		in.stale.Store(true)

		return nil, err
	}

	in.current.Store(now)

	return now, nil
}

// Last returns what was read last, however long ago; nil where nothing was.
func (in *Inputs) Last() *Snapshot {
	if now := in.current.Load(); now != nil {
		return now
	}

	in.mu.Lock()
	defer in.mu.Unlock()

	return in.live
}

// read lists and compiles everything that is not compiled yet; of a kind that is not installed there is nothing. Nothing of what the cache
// holds is modified, so it need not be copied.
func (in *Inputs) read(ctx context.Context, reader client.Reader) (*Snapshot, error) {
	policies := &v1alpha1.AllowancePolicyList{}
	bindings := &v1alpha1.AllowanceBindingList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, bindings, windows, enforcements} {
		err := reader.List(ctx, list, client.UnsafeDisableDeepCopy)
		if list == client.ObjectList(bindings) && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
			err = nil // Without their CRD there are none, and nobody initiates by one.
		}

		if err != nil {
			return nil, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	all := inforce.Objects{Policies: policies.Items, Bindings: bindings.Items, Windows: windows.Items, Enforcements: enforcements.Items}

	return &Snapshot{Set: in.compiled.Set(all), Objects: all}, nil
}

// Stale reports whether an informer knows that it may be behind.
func Stale(informer any) bool {
	a, ok := informer.(interface{ Stale() bool })

	return ok && a.Stale()
}
