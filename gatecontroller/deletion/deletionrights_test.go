// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestNothingIsSearchedThatCouldNotBeReleased(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lister{}
	c := adopting(l, &now)
	have := &fixture.Roles{Of: map[string]bool{"yards": true}, Now: now}
	c.Access = have.Access()

	if all, err := c.Adopt(t.Context(), fixture.BuiltInAndCustom()); err != nil || !all || l.calls["ConfigMap"] != 0 || l.calls["Yard"] != 1 {
		t.Fatalf("adopt: %v, %v, %v", all, err, l.calls)
	}

	// Once there is a right it is, without waiting for as long as for what was.
	have.Of["configmaps"] = true
	now = now.Add(adoptDenied)
	have.Now = now

	if _, err := c.Adopt(t.Context(), fixture.BuiltInAndCustom()); err != nil || l.calls["ConfigMap"] != 1 || l.calls["Yard"] != 1 {
		t.Errorf("adopt, with rights: %v, %v", err, l.calls)
	}
}

// TestAParentThatMayNotBeReadKeepsNobodyWaiting for a cache that would never be
// filled.
func TestAParentThatMayNotBeReadKeepsNobodyWaiting(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Yard"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.Add(gvk, meta.RESTScopeNamespace)

	have := &fixture.Roles{Of: map[string]bool{}, Now: time.Unix(0, 0)}
	o := &Owners{
		Access: have.Access(),
		Client: waitsForEver{fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).Build()},
	}

	child := object.New(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	child.SetName("child")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Yard", Name: "y", UID: "u", Controller: new(true)}})

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()

	err := o.EnsureFinalizer(ctx, child)
	if !errors.Is(err, access.ErrMissing) || !strings.Contains(err.Error(), `the parent of ConfigMap "child"`) ||
		!strings.Contains(err.Error(), "yards.example.org") || !strings.Contains(err.Error(), right.Remedy) {
		t.Errorf("keep: %v", err)
	}
}

// waitsForEver is a cache of what may not be listed.
type waitsForEver struct{ client.Client }

func (waitsForEver) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()

	return ctx.Err()
}

// TestWhatMayNoLongerBeListedPreventsNoOtherKindFromBeingReleased where somebody took the
// right away before the policy.
func TestWhatMayNoLongerBeListedPreventsNoOtherKindFromBeingReleased(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Yard"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.org", Resource: "yards"}, "", fixture.ErrRefused)

	for name, tc := range map[string]struct {
		err, want error
	}{
		"Forbidden":   {err: forbidden},
		"Unavailable": {err: fixture.ErrUnavailable, want: fixture.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Owners{Live: denying{err: tc.err}}
			if err := o.ReleaseAll(t.Context(), gvk); !errors.Is(err, tc.want) {
				t.Errorf("releaseAll: %v, want %v", err, tc.want)
			}
		})
	}
}

// denying is an API server that answers with an error.
type denying struct {
	client.Reader

	err error
}

func (d denying) List(context.Context, client.ObjectList, ...client.ListOption) error { return d.err }
