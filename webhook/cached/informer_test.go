// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/current"
)

var errDown = errors.New("the API server is down")

// server is one that can be known to go away.
type server struct {
	mu    sync.Mutex
	down  bool
	watch *watch.RaceFreeFakeWatcher
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.down {
		return nil, errDown
	}

	return &corev1.NamespaceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

func (s *server) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), opts)
}

func (s *server) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.down {
		return nil, errDown
	}

	s.watch = watch.NewRaceFreeFake()

	return s.watch, nil
}

func (s *server) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), opts)
}

// IsWatchListSemanticsUnSupported has it listed first.
func (*server) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.down = down
	if down {
		s.watch.Stop()
	}
}

func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.watch.Action(watch.Bookmark, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}})
}

func TestAnInformerKnowsWhenItWasNotHeardOfForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{}
		i := NewInformer(s, &corev1.Namespace{}, 0, toolscache.Indexers{})

		// The default one waits until the real time, which is not that of this test.
		if err := i.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {}); err != nil {
			t.Fatal(err)
		}

		var running sync.WaitGroup

		running.Go(func() { i.RunWithContext(ctx) })

		time.Sleep(time.Second)
		synctest.Wait()

		if !i.HasSynced() {
			t.Fatal("the informer has not synced")
		}

		for n, step := range []struct {
			reason string
			do     func()
			after  time.Duration
			want   bool
		}{
			{"A watch that is open.", func() {}, time.Minute, false},
			{"It has not said anything for long.", func() {}, maxSilent, true},
			{"Until it does.", s.bookmark, time.Second, false},
			{"The API server is gone, for a moment.", func() { s.set(true) }, maxLost - 2*time.Second, false},
			{"And for long.", func() {}, 3 * time.Second, true},
			{"It is still gone.", func() {}, time.Hour, true},
			{"It is back, and is watched again.", func() { s.set(false) }, time.Minute + 30*time.Second, false},
		} {
			step.do()
			time.Sleep(step.after)
			synctest.Wait()

			if got := current.Stale(i); got != step.want {
				t.Errorf("step %d: %s stale: %t", n, step.reason, got)
			}
		}

		cancel()
		running.Wait()
	})
}

// known is an informer that knows one object, and may be stale.
type known struct {
	toolscache.SharedIndexInformer

	behind bool
}

func (known) HasSynced() bool { return true }
func (k known) Stale() bool   { return k.behind }

// behind is a cache of such informers, and the API server that these follow.
type behind struct {
	cache.Cache

	cached, live *unstructured.Unstructured
	policies     map[bool][]v1alpha1.AllowancePolicy
	stale        bool
	down         bool
	// unbound is what listing bindings fails with; nil for nothing.
	unbound error
}

func (b *behind) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	out := known{toolscache.NewSharedIndexInformer(&server{}, &unstructured.Unstructured{}, 0, toolscache.Indexers{}), b.stale}

	return out, out.GetStore().Add(b.cached)
}

// List lists what the informers have.
func (b *behind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return reader{behind: b}.List(ctx, list, opts...)
}

// reader reads from the API server, or what informers have.
type reader struct {
	client.Reader

	behind *behind
	live   bool
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if r.behind.down {
		return errDown
	}

	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = r.behind.live.DeepCopy().Object
	}

	return nil
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if r.live && r.behind.down {
		return errDown
	}

	switch l := list.(type) {
	case *v1alpha1.AllowancePolicyList:
		l.Items = r.behind.policies[r.live]
	case *v1alpha1.AllowanceBindingList:
		return r.behind.unbound
	}

	return nil
}

func TestWhatWasNotHeardOfForLongIsReadLive(t *testing.T) {
	version := func(v string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "resourceVersion": v},
		}}
	}
	named := func(names ...string) []v1alpha1.AllowancePolicy {
		out := make([]v1alpha1.AllowancePolicy, len(names))
		for i, name := range names {
			out[i].Name, out[i].Spec.Match = name, v1alpha1.Match{Kind: "Database", Fields: []string{"spec"}}
		}

		return out
	}

	for name, tc := range map[string]struct {
		reason      string
		stale, down bool
		version     string
		policies    int
		unbound     error
		err         error
	}{
		"Fresh":        {reason: "What the informers have is good enough.", version: "1", policies: 2},
		"FreshAndDown": {reason: "Also while the API server is away for a moment.", down: true, version: "1", policies: 2},
		"Stale":        {reason: "A policy that is gone since then grants nothing.", stale: true, version: "2", policies: 1},
		"NoBindings": {
			reason: "Without the CRD of bindings there are none, and all else is as it was.", stale: true, version: "2", policies: 1,
			unbound: apierrors.NewNotFound(schema.GroupResource{Resource: "allowancebindings"}, ""),
		},
		"StaleAndDown": {reason: "Without it nothing is allowed: the failure policy decides.", stale: true, down: true, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			b := &behind{
				cached: version("1"), live: version("2"), stale: tc.stale, down: tc.down, unbound: tc.unbound,
				policies: map[bool][]v1alpha1.AllowancePolicy{false: named("a", "b"), true: named("a")},
			}

			o := NewObjects(b, reader{behind: b, live: true}, nil, nil)

			ns, err := o.Namespace(t.Context(), "shop")
			if !errors.Is(err, tc.err) || tc.err == nil && ns.GetResourceVersion() != tc.version {
				t.Errorf("%s\nnamespace: %v, %v", tc.reason, ns, err)
			}

			in, err := NewInputs(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}

			in.Inputs.Live = reader{behind: b, live: true}

			now, err := in.Get(t.Context())
			if !errors.Is(err, tc.err) || tc.err == nil && len(now.Snapshot.Set.Policies.For(schema.GroupKind{Kind: "Database"})) != tc.policies {
				t.Errorf("%s\ninputs: %v", tc.reason, err)
			}
		})
	}
}
