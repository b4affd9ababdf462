// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package current

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// cluster is one without policies, in which something happens once they were listed.
func cluster(t *testing.T, listed func(c client.Client)) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if _, ok := list.(*v1alpha1.AllowancePolicyList); ok {
				listed(c)
			}

			return err
		},
	}).Build()
}

func get(t *testing.T, in *Inputs) *Snapshot {
	t.Helper()

	now, err := in.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return now
}

func TestWhatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	t.Parallel()

	var in *Inputs

	reads := 0
	in = Of(cluster(t, func(c client.Client) {
		reads++
		if reads > 1 {
			return
		}

		if err := c.Create(t.Context(), &v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}); err != nil {
			t.Error(err)
		}

		in.Changed() // As an informer says.
	}))

	for i, want := range []struct{ policies, reads int }{{0, 1}, {1, 2}, {1, 2}} {
		if got := len(get(t, in).Objects.Policies); got != want.policies || reads != want.reads {
			t.Errorf("asked %d times: %d policies after %d reads, want %d after %d", i+1, got, reads, want.policies, want.reads)
		}
	}
}

// followed is a cache that lists what a cluster has, and whose informers say what a test has them say.
type followed struct {
	*informertest.FakeInformers

	cluster client.Client
}

func (f followed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.cluster.List(ctx, list, opts...)
}

// following are Inputs that follow informers, of each kind one.
func following(t *testing.T, opts ...controllertest.InformerOption) (*Inputs, map[string]*controllertest.FakeInformer) {
	t.Helper()

	c := cluster(t, func(client.Client) {})
	all := followed{cluster: c, FakeInformers: &informertest.FakeInformers{
		Scheme: c.Scheme(), InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{},
	}}
	out := map[string]*controllertest.FakeInformer{}

	for _, kind := range []string{v1alpha1.KindPolicy, v1alpha1.KindBinding, v1alpha1.KindUpgrade, v1alpha1.KindEnforcement} {
		out[kind] = controllertest.NewFakeInformer(opts...)
		all.InformersByGVK[v1alpha1.GroupVersion().WithKind(kind)] = out[kind]
	}

	in, err := Following(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}

	return in, out
}

func TestWhatAnInformerHearsOfIsReadAgain(t *testing.T) {
	t.Parallel()

	all := []string{v1alpha1.KindBinding, v1alpha1.KindPolicy, v1alpha1.KindEnforcement, v1alpha1.KindUpgrade}
	object := func(generation int64) *v1alpha1.AllowancePolicy {
		return &v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	}

	for name, tc := range map[string]struct {
		reason string
		event  func(*controllertest.FakeInformer)
		want   []string
	}{
		"Nothing": {"What was read is still so.", func(*controllertest.FakeInformer) {}, nil},
		"Added":   {"There is one more.", func(i *controllertest.FakeInformer) { i.Add(object(1)) }, all},
		"Changed": {"It says something else.", func(i *controllertest.FakeInformer) { i.Update(object(1), object(2)) }, all},
		"StatusChanged": {
			"A window is active by its status.", func(i *controllertest.FakeInformer) { i.Update(object(1), object(1)) },
			[]string{v1alpha1.KindUpgrade},
		},
		"MadeAgain": {
			"It was deleted and made again while it was not watched.", func(i *controllertest.FakeInformer) {
				again := object(1)
				again.SetUID("another")
				i.Update(object(1), again)
			}, all,
		},
		"Deleted": {"There is one less.", func(i *controllertest.FakeInformer) { i.Delete(object(1)) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in, informers := following(t, controllertest.Synced)

			var got []string

			for kind, i := range informers {
				before := get(t, in)

				tc.event(i)

				if get(t, in) != before {
					got = append(got, kind)
				}
			}

			slices.Sort(got)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nread again for events of, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestItIsNotReadyUntilAllWasRead(t *testing.T) {
	t.Parallel()

	in, informers := following(t)

	for kind, i := range informers {
		if err := in.Ready(nil); !errors.Is(err, errNotSynced) {
			t.Errorf("before %s is synced: %v", kind, err)
		}

		i.Synced()
	}

	if err := in.Ready(nil); err != nil {
		t.Error(err)
	}
}

// stale is an informer that may be behind.
type stale struct{ cache.Informer }

func (stale) Stale() bool { return true }

// TestWhatIsReadLiveIsGoodSinceTheReadBegan for nobody knows what has changed while it went on.
func TestWhatIsReadLiveIsGoodSinceTheReadBegan(t *testing.T) {
	t.Parallel()

	const took = liveFor / 2

	synctest.Test(t, func(t *testing.T) {
		reads := 0
		in := Of(nil)
		in.informers, in.Live = []cache.Informer{stale{}}, cluster(t, func(client.Client) {
			reads++

			time.Sleep(took)
		})

		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {took - 1, 1}, {1, 2}, {took - 1, 2}, {1, 3}} {
			time.Sleep(step.after)
			get(t, in)

			if reads != step.want {
				t.Errorf("%s later: %d reads, want %d", step.after, reads, step.want)
			}
		}
	})
}
