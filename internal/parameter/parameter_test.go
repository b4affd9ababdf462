// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package parameter_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var (
	limit  = schema.GroupVersionKind{Group: "limits.example.org", Version: "v1", Kind: "Limit"}
	global = schema.GroupVersionKind{Group: "limits.example.org", Version: "v1", Kind: "ClusterLimit"}
)

// server is an API server with some Limits, which counts what it is asked.
type server struct {
	client.WithWatch

	reads int
	fails error
}

func newServer(objects ...client.Object) *server {
	s := &server{}
	read := func() error {
		s.reads++

		return s.fails
	}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme()).WithRESTMapper(mapper()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := errors.Join(ctx.Err(), read()); err != nil {
				return err
			}

			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := errors.Join(ctx.Err(), read()); err != nil {
				return err
			}

			return c.List(ctx, list, opts...)
		},
	}).Build()

	return s
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()

	for _, gvk := range []schema.GroupVersionKind{limit, global} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}

	return s
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(limit, meta.RESTScopeNamespace)
	m.Add(global, meta.RESTScopeRoot)

	return m
}

func object(gvk schema.GroupVersionKind, namespace, name string, labelled map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labelled)

	return u
}

func all(label string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"for": label})
}

func TestParametersAreReadByNameAndBySelector(t *testing.T) {
	objects := append(make([]client.Object, 0, 105),
		object(limit, "shop", "b", map[string]string{"for": "plans"}), object(limit, "shop", "a", map[string]string{"for": "plans"}),
		object(limit, "other", "c", map[string]string{"for": "plans"}), object(global, "", "all", map[string]string{"for": "plans"}))
	for i := range 101 {
		objects = append(objects, object(limit, "crowd", strconv.Itoa(i), map[string]string{"for": "many"}))
	}

	cases := map[string]struct {
		reason string
		q      policy.ParamQuery
		want   string
		err    string
	}{
		"Named":     {"One that is there.", policy.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}, "shop/a", ""},
		"Missing":   {"One that is not is no error.", policy.ParamQuery{Kind: limit, Namespace: "shop", Name: "c"}, "", ""},
		"Selected":  {"Those of labels, of one namespace, by name.", policy.ParamQuery{Kind: limit, Namespace: "shop", Selector: all("plans")}, "shop/a shop/b", ""},
		"None":      {"No labels fit.", policy.ParamQuery{Kind: limit, Namespace: "shop", Selector: all("none")}, "", ""},
		"Cluster":   {"A kind without namespaces has none.", policy.ParamQuery{Kind: global, Namespace: "shop", Name: "all"}, "/all", ""},
		"Selecting": {"Nor where labels select.", policy.ParamQuery{Kind: global, Namespace: "shop", Selector: all("plans")}, "/all", ""},
		"Nowhere": {
			"No namespace is not all of them.", policy.ParamQuery{Kind: limit, Selector: all("plans")}, "", policy.ErrParamNamespace.Error(),
		},
		"Many":     {"A hundred at most.", policy.ParamQuery{Kind: limit, Namespace: "crowd", Selector: all("many")}, "", "the selector finds more than 100"},
		"Unserved": {"A kind that nobody serves.", policy.ParamQuery{Kind: limit.GroupVersion().WithKind("Other"), Name: "a"}, "", "does not serve the kind"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			find := parameter.NewReader(newServer(objects...), mapper(), nil, time.Now).Within(t.Context())

			list, err := find(tc.q)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.err)
				}

				return
			}

			var got []string
			for _, o := range list {
				got = append(got, resource.String(o, "metadata", "namespace")+"/"+resource.String(o, "metadata", "name"))
			}

			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("%s\n%v, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestWhatWasReadIsGoodForTwoSeconds(t *testing.T) {
	now := time.Unix(0, 0)
	s := newServer(object(limit, "shop", "a", nil))
	find := parameter.NewReader(s, mapper(), nil, func() time.Time { return now }).Within(t.Context())
	q := policy.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

	steps := []struct {
		title  string
		change func()
		reads  int
		found  int
	}{
		{"It is read once.", func() {}, 1, 1},
		{"It is remembered.", func() { now = now.Add(1999 * time.Millisecond) }, 1, 1},
		{"It is read again.", func() { now = now.Add(time.Millisecond) }, 2, 1},
		{"That it is gone is remembered, too.", func() {
			if err := s.Delete(t.Context(), object(limit, "shop", "a", nil)); err != nil {
				t.Fatal(err)
			}

			now = now.Add(2 * time.Second)
		}, 3, 0},
		{"For as long.", func() {}, 3, 0},
	}

	for _, step := range steps {
		step.change()

		if got, err := find(q); err != nil || len(got) != step.found || s.reads != step.reads {
			t.Errorf("%s\n%d objects, %d reads, %v", step.title, len(got), s.reads, err)
		}
	}

	// An error is not remembered.
	s.fails, now = fixture.ErrRefused, now.Add(time.Minute)

	if _, err := find(q); !errors.Is(err, fixture.ErrRefused) {
		t.Error(err)
	}

	s.fails = nil

	if _, err := find(q); err != nil {
		t.Error(err)
	}
}

// TestAKindThatIsGoneIsNoMissingParameter: the mapper remembers it.
func TestAKindThatIsGoneIsNoMissingParameter(t *testing.T) {
	s := newServer()
	s.fails = &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: "404 page not found"}}},
	}}
	find := parameter.NewReader(s, mapper(), nil, time.Now).Within(t.Context())

	for what, q := range map[string]policy.ParamQuery{
		"by name":   {Kind: limit, Namespace: "shop", Name: "a"},
		"by labels": {Kind: limit, Namespace: "shop", Selector: all("plans")},
	} {
		if got, err := find(q); err == nil || !strings.Contains(err.Error(), "does not serve the kind") {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

// TestARequestThatEndsFailsNoOther that waits for the same parameters.
func TestARequestThatEndsFailsNoOther(t *testing.T) {
	r := parameter.NewReader(newServer(object(limit, "shop", "a", nil)), mapper(), nil, time.Now)
	q := policy.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

	ended, end := context.WithCancel(t.Context())
	end()

	var wg sync.WaitGroup

	for i := range 20 {
		ctx, fails := t.Context(), false
		if i%2 == 0 {
			ctx, fails = ended, true
		}

		wg.Go(func() {
			// One that has ended may still be given what another has read.
			if got, err := r.Within(ctx)(q); !fails && (err != nil || len(got) != 1) {
				t.Errorf("%d objects, %v", len(got), err)
			}
		})
	}

	wg.Wait()

	if (*parameter.Reader)(nil).Within(t.Context()) != nil {
		t.Error("nobody finds parameters, and it is said that somebody does")
	}
}
