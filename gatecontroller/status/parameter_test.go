// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// paramServer is an API server that serves kinds of parameters, and says what Crossplane
// may do.
type paramServer struct {
	discovery.ServerResourcesInterface

	served []metav1.APIResource
	// denied are the verbs that Crossplane lacks.
	denied []string
	down   bool
	// asked counts the questions about rights.
	asked int
}

func (s *paramServer) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	switch {
	case s.down:
		return nil, errDown
	case s.served == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	default:
		return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: s.served}, nil
	}
}

// calls answers for the API server.
func (s *paramServer) calls() interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		review, ok := obj.(*authorizationv1.SubjectAccessReview)
		if !ok {
			return c.Create(ctx, obj, opts...)
		}

		if s.down {
			return errDown
		}

		s.asked++

		by := review.Spec
		review.Status.Allowed = by.User == "system:serviceaccount:crossplane-system:crossplane" &&
			slices.Contains(by.Groups, "system:serviceaccounts:crossplane-system") && by.ResourceAttributes.Namespace == "" &&
			by.ResourceAttributes.Resource == "limits" && !slices.Contains(s.denied, by.ResourceAttributes.Verb)

		return nil
	}}
}

// limits is a kind of parameters.
func limits(namespaced bool) []metav1.APIResource {
	return []metav1.APIResource{
		{Name: "limits/status", Kind: "Limit"},
		{Name: "limits", Kind: "Limit", Namespaced: namespaced, Verbs: metav1.Verbs{"delete", "get", "list", "watch"}},
	}
}

func TestAPolicySaysWhetherItsParametersCanBeRead(t *testing.T) {
	s := &paramServer{}
	c, want, cluster := reporting(t, s.calls())
	have := &fixture.Roles{Of: map[string]bool{}, Now: time.Unix(0, 0)}
	c.Parameters = &Parameters{
		Client: c.Client, Discovery: s, Access: have.Access(), Crossplane: "system:serviceaccount:crossplane-system:crossplane",
	}

	p := &want.Policies[0]
	p.Spec.ParamKind = &v1alpha1.ParamKind{APIVersion: "limits.example.org/v1", Kind: "Limit"}
	p.Spec.ParamRef = &v1alpha1.ParamRef{Name: "default"}

	stored := p.DeepCopy()
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), stored); err != nil {
		t.Fatal(err)
	}

	stored.Spec = p.Spec
	if err := cluster.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}

	const missing = "the manager may not get, list and watch limits.limits.example.org. " + right.Remedy

	steps := []struct {
		title   string
		change  func()
		changed bool

		status          metav1.ConditionStatus
		reason, message string
		ready           string
		scope           v1alpha1.ParamScope
	}{
		{
			"The kind is not served.", func() {}, false,
			"False", v1alpha1.ReasonKindUnknown, "the API server serves no kind Limit of limits.example.org/v1", v1alpha1.ReasonParametersUnreadable, "",
		},
		{
			"Only another kind of the group is.", func() { s.served = []metav1.APIResource{{Name: "others", Kind: "Other"}} }, false,
			"False", v1alpha1.ReasonKindUnknown, "the API server serves no kind Limit of limits.example.org/v1", v1alpha1.ReasonParametersUnreadable, "",
		},
		{
			"It is, and we may not read it.", func() { s.served = limits(true) }, true,
			"False", v1alpha1.ReasonRightsMissing, missing, v1alpha1.ReasonParametersUnreadable, v1alpha1.ParamScopeNamespaced,
		},
		{
			"We may, and Crossplane may not.", func() { have.Of["limits"], s.denied = true, []string{"watch"}; have.Soon() }, true,
			"False", v1alpha1.ReasonRightsMissing,
			"Crossplane (system:serviceaccount:crossplane-system:crossplane) may not watch limits.limits.example.org. " + right.Remedy,
			v1alpha1.ReasonParametersUnreadable, v1alpha1.ParamScopeNamespaced,
		},
		{
			"It may.", func() { s.denied = nil }, true,
			"True", v1alpha1.ReasonReadable, "Kausality and Crossplane may read limits.limits.example.org", v1alpha1.ReasonInForce, v1alpha1.ParamScopeNamespaced,
		},
		{
			"What the API server does not answer changes nothing.", func() { s.down = true }, false,
			"True", v1alpha1.ReasonReadable, "Kausality and Crossplane may read limits.limits.example.org", v1alpha1.ReasonInForce, v1alpha1.ParamScopeNamespaced,
		},
		{
			"It has another scope.", func() { s.down, s.served = false, limits(false) }, true,
			"True", v1alpha1.ReasonReadable, "Kausality and Crossplane may read limits.limits.example.org", v1alpha1.ReasonInForce, v1alpha1.ParamScopeCluster,
		},
		{
			"It is gone.", func() { s.served = nil }, true,
			"False", v1alpha1.ReasonKindUnknown, "the API server serves no kind Limit of limits.example.org/v1", v1alpha1.ReasonParametersUnreadable, "",
		},
	}

	c.Set(t.Context(), inCluster(want, fixture.ServedKinds()))

	for _, step := range steps {
		step.change()

		if got := (Policies{c}).rechecked(t.Context(), want.Policies); (len(got) > 0) != step.changed || step.changed && !slices.Equal(got, []string{p.GetName()}) {
			t.Errorf("%s\npolicies %v are to be reported on", step.title, got)
		}

		if err := reportAll(t, c, inCluster(want, fixture.ServedKinds())); err != nil {
			t.Errorf("%s\n%v", step.title, err)
		}

		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}

		cond := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionParametersReadable)
		if cond == nil || cond.Status != step.status || cond.Reason != step.reason || !strings.Contains(cond.Message, step.message) {
			t.Errorf("%s\ncondition %+v", step.title, cond)
		}

		ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != step.ready || stored.Status.ParamScope != step.scope {
			t.Errorf("%s\ncondition %+v, scope %q", step.title, ready, stored.Status.ParamScope)
		}
	}

	// Without parameters nothing is said of them, and nobody is asked.
	asked := s.asked
	p.Spec.ParamKind, p.Spec.ParamRef = nil, nil

	stored.Spec = p.Spec
	if err := cluster.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}

	if err := reportAll(t, c, inCluster(want, fixture.ServedKinds())); err != nil {
		t.Fatal(err)
	}

	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}

	if meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionParametersReadable) != nil || stored.Status.ParamScope != "" || s.asked != asked {
		t.Errorf("%+v, and %d questions", stored.Status, s.asked-asked)
	}
}

// TestAKindThatCannotBeWatchedHoldsNoParameters: a function that requires it would have
// Crossplane wait for that in vain, whatever it is allowed.
func TestAKindThatCannotBeWatchedHoldsNoParameters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, plural string
		verbs          metav1.Verbs
		// lacks are the verbs that are missing; empty for none.
		lacks string
	}{
		"PodMetrics":          {"metrics-server is asked each time.", "pods", metav1.Verbs{"get", "list"}, "watch"},
		"SubjectAccessReview": {"A question is no object.", "subjectaccessreviews", metav1.Verbs{"create"}, "get, list and watch"},
		"Limit":               {"Most kinds can be.", "limits", metav1.Verbs{"create", "get", "list", "watch"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &paramServer{served: []metav1.APIResource{{Name: tc.plural, Kind: name, Namespaced: true, Verbs: tc.verbs}}}
			_, _, cluster := reporting(t, s.calls())
			f := &Parameters{Client: cluster, Discovery: s, Crossplane: "system:serviceaccount:crossplane-system:crossplane"}

			got, err := f.find(t.Context(), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: name})
			if err != nil {
				t.Fatal(err)
			}

			want := readable{
				reason: v1alpha1.ReasonReadable, message: "Kausality and Crossplane may read " + tc.plural + ".example.org",
				scope: v1alpha1.ParamScopeNamespaced,
			}
			if tc.lacks != "" {
				want.reason = v1alpha1.ReasonKindUnsupported
				want.message = "the API server does not support " + tc.lacks + " of " + tc.plural + ".example.org, as Crossplane needs: " +
					"objects of this kind hold no parameters"
			}

			if got != want {
				t.Errorf("%s\n%+v, want %+v", tc.reason, got, want)
			}
		})
	}
}

// TestManyPoliciesOfOneKindAskOnce about who may read it.
func TestManyPoliciesOfOneKindAskOnce(t *testing.T) {
	s := &paramServer{served: limits(true)}
	_, _, cluster := reporting(t, s.calls())
	f := &Parameters{Client: cluster, Discovery: s, Crossplane: "system:serviceaccount:crossplane-system:crossplane"}
	gvk := schema.GroupVersionKind{Group: "limits.example.org", Version: "v1", Kind: "Limit"}

	for range 3 {
		if got, err := f.of(t.Context(), gvk); err != nil || got.reason != v1alpha1.ReasonReadable {
			t.Errorf("%+v, %v", got, err)
		}
	}

	if want := len(right.Read(schema.GroupResource{}).Rights()); s.asked != want {
		t.Errorf("%d questions, want %d", s.asked, want)
	}

	// What is not known, and not to be found, is an error, and is asked about again.
	s.down = true

	if got, err := f.of(t.Context(), gvk.GroupVersion().WithKind("Other")); err == nil {
		t.Errorf("%+v of an API server that does not answer", got)
	}
}
