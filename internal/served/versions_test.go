// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// serving is an API server that serves resources by group and version, as "apps/v1".
type serving struct {
	lists atomic.Pointer[map[string][]string]
	// broken are paths that it does not answer.
	broken map[string]bool
	asked  atomic.Int32
}

func (s *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)

	if s.broken[r.URL.Path] {
		http.Error(w, "boom", http.StatusServiceUnavailable)

		return
	}

	var out any

	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	lists := *s.lists.Load()
	resources, ok := lists[path]

	switch {
	case r.URL.Path == "/api":
		out = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case ok:
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: path}
		for _, name := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name}, metav1.APIResource{Name: name + "/status"})
		}

		out = list
	default:
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: path}

		for gv := range lists {
			if version, ok := strings.CutPrefix(gv, path+"/"); ok {
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version})
			}
		}

		if len(group.Versions) == 0 {
			http.NotFound(w, r)

			return
		}

		out = group
	}

	w.Header().Set("Content-Type", "application/json")

	if err := json.NewEncoder(w).Encode(out); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func clock(at *time.Time) func() time.Time { return func() time.Time { return *at } }

func versions(t *testing.T, s *serving, now func() time.Time) *served.Versions {
	t.Helper()

	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)

	d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}

	return served.NewVersions(d.RESTClient(), now)
}

func TestVersionsAreThoseInWhichAResourceIsServed(t *testing.T) {
	lists := map[string][]string{
		"v1":                    {"configmaps"},
		"example.org/v1":        {"databases", "caches"},
		"example.org/v1alpha1":  {"databases"},
		"example.org/v2":        {"caches"},
		"other.example.org/v1":  {"databases"},
		"other.example.org/v1b": {"databases"},
	}

	cases := map[string]struct {
		reason string
		broken []string
		of     schema.GroupResource
		want   []string
	}{
		"Some":     {"Those of its group that have it.", nil, schema.GroupResource{Group: "example.org", Resource: "databases"}, []string{"v1", "v1alpha1"}},
		"Core":     {"The core group has a path of its own.", nil, schema.GroupResource{Resource: "configmaps"}, []string{"v1"}},
		"Nowhere":  {"None has it, and yet somebody asks.", nil, schema.GroupResource{Group: "example.org", Resource: "queues"}, nil},
		"NoGroup":  {"Nor is there the group.", nil, schema.GroupResource{Group: "gone.org", Resource: "databases"}, nil},
		"Unknown":  {"One does not answer: nothing is known.", []string{"/apis/example.org/v2"}, schema.GroupResource{Group: "example.org", Resource: "databases"}, nil},
		"Unheard":  {"The group does not answer.", []string{"/apis/example.org"}, schema.GroupResource{Group: "example.org", Resource: "databases"}, nil},
		"AnotherG": {"What another group answers does not matter.", []string{"/apis/other.example.org"}, schema.GroupResource{Group: "example.org", Resource: "caches"}, []string{"v1", "v2"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			s := &serving{broken: map[string]bool{}}
			s.lists.Store(&lists)

			for _, path := range tc.broken {
				s.broken[path] = true
			}

			if diff := cmp.Diff(tc.want, versions(t, s, clock(&now)).Of(t.Context(), tc.of)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAVersionThatIsServedSinceIsFound(t *testing.T) {
	now := time.Unix(0, 0)
	s := &serving{}
	s.lists.Store(&map[string][]string{"example.org/v1alpha1": {"databases"}})
	v := versions(t, s, clock(&now))
	databases := schema.GroupResource{Group: "example.org", Resource: "databases"}

	if diff := cmp.Diff([]string{"v1alpha1"}, v.Of(t.Context(), databases)); diff != "" {
		t.Errorf("before, -want, +got:\n%s", diff)
	}

	asked := s.asked.Load()
	s.lists.Store(&map[string][]string{"example.org/v1alpha1": {"databases"}, "example.org/v1": {"databases"}})

	v.Of(t.Context(), databases)

	if got := s.asked.Load(); got != asked {
		t.Errorf("asked %d times more within two seconds", got-asked)
	}

	now = now.Add(2 * time.Second)

	if diff := cmp.Diff([]string{"v1", "v1alpha1"}, v.Of(t.Context(), databases)); diff != "" {
		t.Errorf("after the CRD serves v1 too, -want, +got:\n%s", diff)
	}
}

func TestNobodyWhoFindsVersionsKnowsNone(t *testing.T) {
	var v *served.Versions

	if got := v.Of(t.Context(), schema.GroupResource{Resource: "configmaps"}); got != nil {
		t.Errorf("got %v", got)
	}
}
