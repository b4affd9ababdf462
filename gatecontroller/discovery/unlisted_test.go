// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// failing discovers what the fake has, and not some group versions.
type failing struct {
	*fakediscovery.FakeDiscovery

	groups map[schema.GroupVersion]error
}

func (f failing) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := f.FakeDiscovery.ServerGroupsAndResources()
	lists = slices.DeleteFunc(slices.Clone(lists), func(l *metav1.APIResourceList) bool {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)

		return f.groups[gv] != nil
	})

	if len(f.groups) > 0 {
		err = &discovery.ErrGroupDiscoveryFailed{Groups: f.groups}
	}

	return groups, lists, err
}

func resolving(t *testing.T, crds ...*extv1.CustomResourceDefinition) *Resolver {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, d := range crds {
		b.WithObjects(d)
	}

	c := b.Build()

	return &Resolver{Crds: c, Live: c}
}

func lists(groupVersions map[string]string) []*metav1.APIResourceList {
	out := make([]*metav1.APIResourceList, 0, len(groupVersions))

	for gv, res := range groupVersions {
		out = append(out, &metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{
			{Name: res, Kind: res, Verbs: metav1.Verbs{"get", "update"}},
		}})
	}

	return out
}

func kindNames(served []kind.Served) []string {
	out := make([]string, 0, len(served))

	for _, k := range served {
		name := k.Resource + "." + k.GVK.Group
		if k.Unlisted {
			name += " unlisted"
		}

		out = append(out, name)
	}

	slices.Sort(out)

	return out
}

// An APIService may take a CRD's group version for an API server that does not
// have the kind.
func TestAKindThatIsShadowedPreventsNoOtherFromBeingFound(t *testing.T) {
	d := crd(extv1.ConditionTrue, true)
	d.Spec.Names.Categories = []string{"managed"}
	d.Spec.Versions[0].Subresources = &extv1.CustomResourceSubresources{Scale: &extv1.CustomResourceSubresourceScale{}}

	r := resolving(t, d)
	r.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists(map[string]string{"mr.example.org/v1": "others", "apps/v1": "deployments"})}}

	got, err := r.Served(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"buckets.mr.example.org unlisted", "deployments.apps", "others.mr.example.org"}, kindNames(got)); diff != "" {
		t.Errorf("served: -want, +got:\n%s", diff)
	}

	for _, k := range got {
		if k.Unlisted && (k.GVK != schema.GroupVersionKind{Group: "mr.example.org", Version: "v1", Kind: "Bucket"} || k.Owns || !k.Scales || k.Definition == "") {
			t.Errorf("the kind is not as its CRD defines it: %+v", k)
		}
	}
}

// An aggregated API server that is down has taken nothing away.
func TestKindsOfAnAPIServiceThatCannotBeReachedStay(t *testing.T) {
	r := resolving(t)
	fakes := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists(map[string]string{"wardle.example.com/v1": "flunders", "apps/v1": "deployments"})}}
	down := map[schema.GroupVersion]error{{Group: "wardle.example.com", Version: "v1"}: fixture.ErrRefused}

	for i, step := range []struct {
		failed map[schema.GroupVersion]error
		want   []string
	}{
		{nil, []string{"deployments.apps", "flunders.wardle.example.com"}},
		{down, []string{"deployments.apps", "flunders.wardle.example.com unlisted"}},
		{down, []string{"deployments.apps", "flunders.wardle.example.com unlisted"}},
		{nil, []string{"deployments.apps", "flunders.wardle.example.com"}},
	} {
		r.Discovery = failing{FakeDiscovery: fakes, groups: step.failed}

		got, err := r.Served(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(step.want, kindNames(got)); diff != "" {
			t.Errorf("step %d: -want, +got:\n%s", i, diff)
		}
	}
}

func TestAKindThatIsNotListedForLongIsReported(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	x := NewUnlisted(func() time.Time { return now })
	bucket := kind.Served{GVK: schema.GroupVersionKind{Group: "mr.example.org", Version: "v1", Kind: "Bucket"}, Resource: "buckets", Unlisted: true}
	listed := kind.Served{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments"}

	for i, step := range []struct {
		after    time.Duration
		served   []kind.Served
		behind   bool
		unknown  int
		unlisted string
	}{
		{0, []kind.Served{bucket, listed}, true, 0, "for a moment, as when an API server starts"},
		{unlistedLong - time.Second, []kind.Served{bucket, listed}, true, 0, "still"},
		{time.Second, []kind.Served{bucket, listed}, true, 1, "for long"},
		{time.Second, []kind.Served{listed}, false, 0, "gone"},
		{time.Second, []kind.Served{bucket, listed}, true, 0, "again, and the time starts anew"},
	} {
		now = now.Add(step.after)

		if got := x.Set(t.Context(), step.served); got != step.behind {
			t.Errorf("step %d, %s: look again soon: %t", i, step.unlisted, got)
		}

		_, unknown := kind.Named(x.Without(step.served), []kind.Name{{Kind: "Bucket"}, {Kind: "Deployment"}})
		if step.served[0].Unlisted && len(unknown) != step.unknown {
			t.Errorf("step %d, %s: told to be unknown: %v", i, step.unlisted, unknown)
		}
	}
}
