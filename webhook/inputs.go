// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

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

// Inputs are what decisions are made by: the policies, windows and Enforcements
// there are, compiled when they change and not when they are needed.
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
	current atomic.Pointer[inputs]
	// live is what was read live, and liveAt when.
	live   *inputs
	liveAt time.Time
}

// inputs are never modified.
type inputs struct {
	*inforce.Set

	// kinds are those that policies and windows name.
	kinds namedKinds
}

// NewInputs makes Inputs that follow the informers of a cache, which starts
// later.
func NewInputs(ctx context.Context, c cache.Cache) (*Inputs, error) {
	in := &Inputs{reader: c, compiled: inforce.NewCache()}
	in.stale.Store(true)

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

// errNotSynced is the cause while the webhook is unready, until it has read what it decides by.
var errNotSynced = errors.New("policies, bindings, windows and Enforcements are not read yet")

// Ready is a health check: an error until everything was read once. Other kinds
// do not matter to it, or one that cannot be listed would stop them all.
func (in *Inputs) Ready(*http.Request) error {
	if slices.ContainsFunc(in.synced, func(synced toolscache.InformerSynced) bool { return !synced() }) {
		return errNotSynced
	}

	return nil
}

// handler notes that something changed; of most kinds the status does not
// matter.
func (in *Inputs) handler(status bool) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { in.stale.Store(true) },
		DeleteFunc: func(any) { in.stale.Store(true) },
		UpdateFunc: func(old, obj any) {
			was, _ := old.(client.Object)
			is, _ := obj.(client.Object)

			if status || was == nil || is == nil || was.GetGeneration() != is.GetGeneration() {
				in.stale.Store(true)
			}
		},
	}
}

// liveFor is how long what was read live is good for.
const liveFor = 2 * time.Second

// readLive reads what there is from the API server, for the informers may be behind.
func (in *Inputs) readLive(ctx context.Context) (*inputs, error) {
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

// get returns what there is now.
func (in *Inputs) get(ctx context.Context) (*inputs, error) {
	if in.Live != nil && slices.ContainsFunc(in.informers, func(i cache.Informer) bool { return stale(i) }) {
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

// last returns what was read last, however long ago; nil where nothing was.
func (in *Inputs) last() *inputs {
	if now := in.current.Load(); now != nil {
		return now
	}

	in.mu.Lock()
	defer in.mu.Unlock()

	return in.live
}

// read compiles everything that is not compiled yet. Nothing of what the cache
// holds is modified, so it need not be copied.
func (in *Inputs) read(ctx context.Context, reader client.Reader) (*inputs, error) {
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

	return &inputs{
		Set: in.compiled.Set(inforce.Objects{
			Policies: policies.Items, Bindings: bindings.Items, Windows: windows.Items, Enforcements: enforcements.Items,
		}),
		kinds: kindsOf(policies.Items, windows.Items),
	}, nil
}
