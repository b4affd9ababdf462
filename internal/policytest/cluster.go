// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// errUnreadable is what who reads parameters says that cannot read them.
var errUnreadable = errors.New("boom")

// FindParams finds parameters of a scenario. Their kind has namespaces where any of them
// is in one, and none where all of them are in none.
func (s *Scenario) FindParams(q expression.ParamQuery) (expression.ParamList, error) {
	namespaced, known := s.scope(q.Kind)
	out := expression.ParamList{ClusterScoped: known && !namespaced}

	switch {
	case slices.Contains(s.Request.Unreadable, q.Kind.Kind):
		return out, errUnreadable
	case namespaced && q.Namespace == "":
		return out, policy.ErrParamNamespace
	}

	for _, u := range s.Params {
		here := u.GetNamespace() == "" || u.GetNamespace() == q.Namespace
		named := u.GetName() == q.Name || q.Selector != nil && q.Selector.Matches(labels.Set(u.GetLabels()))

		if here && named && u.GroupVersionKind() == q.Kind {
			out.Objects = append(out.Objects, u.Object)
		}
	}

	return out, nil
}

// scope reports whether a kind of parameters has namespaces, where there are any of it.
func (s *Scenario) scope(kind schema.GroupVersionKind) (namespaced, known bool) {
	for _, u := range s.Params {
		if u.GroupVersionKind() == kind {
			known = true
			namespaced = namespaced || u.GetNamespace() != ""
		}
	}

	return namespaced, known
}

// errFailing is what an authorizer says that cannot be asked.
var errFailing = errors.New("the authorizer is away")

// Authorize is the cluster's authorizer of a scenario.
func (s *Scenario) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(s.Request.Granted, "failing") {
		return authorizer.DecisionNoOpinion, "", errFailing
	}

	what, where := s.asked(a)

	if slices.Contains(s.Request.Granted, what+where) || slices.Contains(s.Request.Granted, what+" in "+a.GetNamespace()+where) {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", nil
}

// asked is what the authorizer is asked for, as [Request] writes it: before and after the
// namespace.
func (s *Scenario) asked(a authorizer.Attributes) (what, where string) {
	what = a.GetVerb()

	switch {
	case !a.IsResourceRequest():
		what += " " + a.GetPath()
	case a.GetSubresource() != v1alpha1.SubresourceKausality || a.GetResource() != s.Request.Resource:
		what += " " + strings.TrimSuffix(a.GetResource()+"/"+a.GetSubresource(), "/")
	}

	if name := a.GetUser().GetName(); name != s.user().Name {
		where += " as " + name
	}

	if selected, err := a.GetFieldSelector(); err == nil && len(selected) > 0 {
		where += " where " + selected[0].Field + string(selected[0].Operator) + selected[0].Value
	}

	return what, where
}

func (s *Scenario) group() string {
	if s.New != nil {
		return s.New.GroupVersionKind().Group
	}

	return s.Old.GroupVersionKind().Group
}
