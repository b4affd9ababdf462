// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package parameter_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
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
	objects := []client.Object{
		object(limit, "shop", "b", map[string]string{"for": "plans"}), object(limit, "shop", "a", map[string]string{"for": "plans"}),
		object(limit, "other", "c", map[string]string{"for": "plans"}), object(global, "", "all", map[string]string{"for": "plans"}),
	}

	cases := map[string]struct {
		reason string
		q      expression.ParamQuery
		want   string
		err    string
	}{
		"Named":     {"One that is there.", expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}, "shop/a", ""},
		"Missing":   {"One that is not is no error.", expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "c"}, "", ""},
		"Selected":  {"Those of labels, of one namespace, by name.", expression.ParamQuery{Kind: limit, Namespace: "shop", Selector: all("plans")}, "shop/a shop/b", ""},
		"None":      {"No labels fit.", expression.ParamQuery{Kind: limit, Namespace: "shop", Selector: all("none")}, "", ""},
		"Cluster":   {"A kind without namespaces has none.", expression.ParamQuery{Kind: global, Namespace: "shop", Name: "all"}, "/all", ""},
		"Selecting": {"Nor where labels select.", expression.ParamQuery{Kind: global, Namespace: "shop", Selector: all("plans")}, "/all", ""},
		"Absent":    {"That a kind has no namespaces is told where nothing of it is there, too.", expression.ParamQuery{Kind: global, Namespace: "shop", Name: "a"}, "", ""},
		"Nowhere": {
			"No namespace is not all of them.", expression.ParamQuery{Kind: limit, Selector: all("plans")}, "", policy.ErrParamNamespace.Error(),
		},
		"Unserved": {"A kind that nobody serves.", expression.ParamQuery{Kind: limit.GroupVersion().WithKind("Other"), Name: "a"}, "", "does not serve the kind"},
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
			for _, o := range list.Objects {
				got = append(got, resource.String(o, "metadata", "namespace")+"/"+resource.String(o, "metadata", "name"))
			}

			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("%s\n%v, %v, want %s", tc.reason, got, err, tc.want)
			}

			if list.ClusterScoped != (tc.q.Kind == global) {
				t.Errorf("%s\nthe kind is cluster-scoped: %t", tc.reason, list.ClusterScoped)
			}
		})
	}
}

func TestWhatWasReadIsGoodForTwoSeconds(t *testing.T) {
	now := time.Unix(0, 0)
	s := newServer(object(limit, "shop", "a", nil))
	find := parameter.NewReader(s, mapper(), nil, func() time.Time { return now }).Within(t.Context())
	q := expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

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

		if got, err := find(q); err != nil || len(got.Objects) != step.found || s.reads != step.reads {
			t.Errorf("%s\n%d objects, %d reads, %v", step.title, len(got.Objects), s.reads, err)
		}
	}
}

// TestAnErrorIsRememberedForASecond so that not each request asks again for what cannot be
// read.
func TestAnErrorIsRememberedForASecond(t *testing.T) {
	now := time.Unix(0, 0)
	s := newServer(object(limit, "shop", "a", nil))
	m := &countingMapper{RESTMapper: mapper()}
	find := parameter.NewReader(s, m, nil, func() time.Time { return now }).Within(t.Context())
	known := expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}
	unknown := expression.ParamQuery{Kind: limit.GroupVersion().WithKind("Other"), Name: "a"}

	steps := []struct {
		title  string
		change func()
		fails  bool
		reads  int
		// asked is how often the mapper was asked for the kind that nobody serves.
		asked int
	}{
		{"What fails has failed.", func() { s.fails = fixture.ErrRefused }, true, 1, 1},
		{"It is not tried again at once.", func() { now, s.fails = now.Add(999*time.Millisecond), nil }, true, 1, 1},
		{"But then.", func() { now = now.Add(time.Millisecond) }, false, 2, 2},
	}

	for _, step := range steps {
		step.change()

		if _, err := find(known); (err != nil) != step.fails || step.fails && !errors.Is(err, fixture.ErrRefused) {
			t.Errorf("%s\n%v", step.title, err)
		}

		if _, err := find(unknown); err == nil || !strings.Contains(err.Error(), "does not serve the kind") {
			t.Errorf("%s\n%v", step.title, err)
		}

		if s.reads != step.reads || m.asked[unknown.Kind.Kind] != step.asked {
			t.Errorf("%s\n%d reads, and %v", step.title, s.reads, m.asked)
		}
	}
}

// countingMapper counts what it is asked, by kind.
type countingMapper struct {
	meta.RESTMapper

	asked map[string]int
}

func (m *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.asked == nil {
		m.asked = map[string]int{}
	}

	m.asked[gk.Kind]++

	return m.RESTMapper.RESTMapping(gk, versions...)
}

// silent is an API server that does not answer.
type silent struct {
	client.Reader

	reads atomic.Int32
}

func (s *silent) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	s.reads.Add(1)
	<-ctx.Done()

	return ctx.Err()
}

// TestNobodyWaitsForLongForWhatDoesNotAnswer be it an aggregated API that hangs.
func TestNobodyWaitsForLongForWhatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := &silent{}, time.Now()
		r := parameter.NewReader(s, mapper(), nil, time.Now)
		q := expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

		var wg sync.WaitGroup

		for _, patience := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute, time.Minute} {
			wg.Go(func() {
				ctx, stop := context.WithTimeout(t.Context(), patience)
				defer stop()

				_, err := r.Within(ctx)(q)
				if took, want := time.Since(begun), min(patience, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) || took != want {
					t.Errorf("one that waits for %s has waited for %s: %v", patience, took, err)
				}
			})
		}

		wg.Wait()

		// The next one need not wait.
		if _, err := r.Within(t.Context())(q); err == nil || time.Since(begun) != 2*time.Second || s.reads.Load() != 1 {
			t.Errorf("after %s and %d reads: %v", time.Since(begun), s.reads.Load(), err)
		}

		time.Sleep(time.Second)

		if _, err := r.Within(t.Context())(q); err == nil || s.reads.Load() != 2 {
			t.Errorf("after %d reads: %v", s.reads.Load(), err)
		}
	})
}

// TestWhoAsksAsAReadEndsHasItsOutcome and waits for no other: a hundred ask just then.
func TestWhoAsksAsAReadEndsHasItsOutcome(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s, begun := &silent{}, time.Now()
			find := parameter.NewReader(s, mapper(), nil, time.Now).Within(t.Context())
			q := expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

			var wg sync.WaitGroup

			for i := range 100 {
				wg.Go(func() {
					if i > 0 {
						time.Sleep(2 * time.Second)
					}

					if _, err := find(q); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 2*time.Second {
						t.Errorf("after %s: %v", time.Since(begun), err)
					}
				})
			}

			wg.Wait()

			if n := s.reads.Load(); n != 1 {
				t.Errorf("%d reads", n)
			}
		})
	}
}

// TestParametersOfAnotherNamespaceAreNotUsed where a kind has namespaces that had none
// before: the mapper never forgets.
func TestParametersOfAnotherNamespaceAreNotUsed(t *testing.T) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(limit, meta.RESTScopeRoot)

	find := parameter.NewReader(newServer(
		object(limit, "bank", "own", map[string]string{"for": "plans"}), object(limit, "shop", "own", map[string]string{"for": "plans"}),
	), m, nil, time.Now).Within(t.Context())

	p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match:     v1alpha1.Match{Kind: "Widget", Fields: []string{"spec"}},
		Allow:     []v1alpha1.Permission{{Kind: "ConfigMap", Mutations: []string{"data"}}},
		ParamKind: &v1alpha1.ParamKind{APIVersion: limit.GroupVersion().String(), Kind: limit.Kind},
		ParamRef:  &v1alpha1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": "plans"}}},
	}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	v := p.Evaluate(expression.Input{Home: "shop", Object: map[string]any{}, Params: find})
	if v.Met || !strings.Contains(v.Missing, "in another namespace") || policy.Unread(v.Problem) == nil {
		t.Errorf("met %t: %q, %v", v.Met, v.Missing, v.Problem)
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

	for what, q := range map[string]expression.ParamQuery{
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
	q := expression.ParamQuery{Kind: limit, Namespace: "shop", Name: "a"}

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
			if got, err := r.Within(ctx)(q); !fails && (err != nil || len(got.Objects) != 1) {
				t.Errorf("%d objects, %v", len(got.Objects), err)
			}
		})
	}

	wg.Wait()

	if (*parameter.Reader)(nil).Within(t.Context()) != nil {
		t.Error("nobody finds parameters, and it is said that somebody does")
	}
}
