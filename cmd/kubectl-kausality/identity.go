// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// identity is who would make a change.
type identity struct {
	user policy.User
	// self is true where that is whoever runs the command.
	self bool
}

// identify finds out who somebody is: whoever runs the command where no name is given, as
// the API server says it.
func (c *cluster) identify(ctx context.Context, name, uid string, groups []string, extra map[string][]string) (identity, error) {
	if name != "" {
		u := policy.User{Name: name, UID: uid, Groups: slices.Clone(groups), Extra: extra}
		for _, g := range append(policy.ServiceAccountGroups(name), user.AllAuthenticated) {
			if !slices.Contains(u.Groups, g) {
				u.Groups = append(u.Groups, g)
			}
		}

		return identity{user: u}, nil
	}

	review := &authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{
		APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview",
	}}
	if err := c.reviewed(ctx, authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"), review); err != nil {
		return identity{}, fmt.Errorf("cannot find out who you are; give --as: %w", err)
	}

	info := review.Status.UserInfo
	u := policy.User{Name: info.Username, UID: info.UID, Groups: info.Groups}

	for key, values := range info.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}

		u.Extra[key] = values
	}

	return identity{user: u, self: true}, nil
}

// reviewed has the API server answer a review.
func (c *cluster) reviewed(ctx context.Context, gvr schema.GroupVersionResource, review runtime.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return fmt.Errorf("cannot encode a question: %w", err)
	}

	got, err := c.client.Resource(gvr).Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	return runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, review)
}

// authorizer asks the cluster's about the user. About another one than whoever runs the
// command that takes the right to create SubjectAccessReviews.
func (i *inquirer) authorizer(ctx context.Context) authorizer.UnconditionalAuthorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		status, err := i.review(ctx, a)
		if err != nil || !status.Allowed {
			return authorizer.DecisionNoOpinion, status.Reason, err
		}

		return authorizer.DecisionAllow, status.Reason, nil
	})
}

// review asks one question.
func (i *inquirer) review(ctx context.Context, a authorizer.Attributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	version := authorizationv1.SchemeGroupVersion
	about, path := attributesOf(a)

	if i.self && a.GetUser().GetName() == i.user.Name {
		review := &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "SelfSubjectAccessReview"},
			Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: about, NonResourceAttributes: path},
		}
		err := i.reviewed(ctx, version.WithResource("selfsubjectaccessreviews"), review)

		return review.Status, err
	}

	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range a.GetUser().GetExtra() {
		extra[key] = values
	}

	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: extra,
			ResourceAttributes: about, NonResourceAttributes: path,
		},
	}
	err := i.reviewed(ctx, version.WithResource("subjectaccessreviews"), review)

	return review.Status, err
}

// attributesOf are what a review asks about: a resource, or a path.
func attributesOf(a authorizer.Attributes) (*authorizationv1.ResourceAttributes, *authorizationv1.NonResourceAttributes) {
	if !a.IsResourceRequest() {
		return nil, &authorizationv1.NonResourceAttributes{Verb: a.GetVerb(), Path: a.GetPath()}
	}

	out := &authorizationv1.ResourceAttributes{
		Namespace: a.GetNamespace(), Name: a.GetName(), Verb: a.GetVerb(),
		Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
	}

	// What of a selector cannot be read asks for more than it says, and is granted less.
	if fields, _ := a.GetFieldSelector(); len(fields) > 0 {
		out.FieldSelector = &authorizationv1.FieldSelectorAttributes{}
		for _, r := range fields {
			out.FieldSelector.Requirements = append(out.FieldSelector.Requirements, metav1.FieldSelectorRequirement{
				Key: r.Field, Operator: fieldOperator(r.Operator), Values: []string{r.Value},
			})
		}
	}

	if labels, _ := a.GetLabelSelector(); len(labels) > 0 {
		out.LabelSelector = &authorizationv1.LabelSelectorAttributes{}
		for _, r := range labels {
			out.LabelSelector.Requirements = append(out.LabelSelector.Requirements, metav1.LabelSelectorRequirement{
				Key: r.Key(), Operator: labelOperator(r.Operator()), Values: r.ValuesUnsorted(),
			})
		}
	}

	return out, nil
}

func fieldOperator(op selection.Operator) metav1.FieldSelectorOperator {
	if op == selection.NotEquals {
		return metav1.FieldSelectorOpNotIn
	}

	return metav1.FieldSelectorOpIn
}

func labelOperator(op selection.Operator) metav1.LabelSelectorOperator {
	switch op {
	case selection.NotEquals, selection.NotIn:
		return metav1.LabelSelectorOpNotIn
	case selection.Exists:
		return metav1.LabelSelectorOpExists
	case selection.DoesNotExist:
		return metav1.LabelSelectorOpDoesNotExist
	default:
		return metav1.LabelSelectorOpIn
	}
}
