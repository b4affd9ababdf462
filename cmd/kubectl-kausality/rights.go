// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/doctor"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// rights finds out what the manager may not do that it has to.
func (c *cluster) rights(ctx context.Context, s *doctor.State, platform bool) {
	for _, src := range doctor.Composites(s) {
		s.Composites = append(s.Composites, c.list(ctx, src, "").Items...)
	}

	s.Served = c.served()

	known := map[right.Right]bool{}

	s.Lacks = right.Lacks(doctor.Needs(s, platform), func(r right.Right) bool {
		return slices.ContainsFunc(append(r.Wide(), r), func(r right.Right) bool {
			may, ok := known[r]
			if ok || s.RightsProblem != "" {
				return may
			}

			may, err := c.may(ctx, s.Manager, r)
			if err != nil {
				s.RightsProblem = err.Error()
			}

			known[r] = may

			return may
		})
	})
}

// served are the kinds that the API server serves, as far as it tells.
func (c *cluster) served() []right.Kind {
	lists, _ := c.discovery.ServerPreferredResources() // What one group fails to list is no reason to leave out the others.

	var out []right.Kind

	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range l.APIResources {
			out = append(out, right.Kind{
				Group: gv.Group, Kind: r.Kind, Resource: r.Name,
				Crossplane: slices.ContainsFunc(r.Categories, func(c string) bool { return c == "claim" || c == "composite" || c == "managed" }),
			})
		}
	}

	return out
}

// may asks whether the manager may do something in all namespaces.
func (c *cluster) may(ctx context.Context, m doctor.Manager, r right.Right) (bool, error) {
	resource, sub := r.Split()
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   policy.ServiceAccountPrefix + m.Namespace + ":" + m.ServiceAccount,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + m.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub,
			},
		},
	}

	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, fmt.Errorf("cannot encode a question: %w", err)
	}

	got, err := c.client.Resource(authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")).
		Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{})
	if err != nil {
		return false, err //nolint:wrapcheck // Says what may not be done.
	}

	allowed, _, err := unstructured.NestedBool(got.Object, "status", "allowed")

	return allowed, err //nolint:wrapcheck // Of a field that the API server always has.
}

// errUnknownRights is the cause where the API server does not say what the manager
// may do.
var errUnknownRights = errors.New("whoever asks has to be allowed to create subjectaccessreviews.authorization.k8s.io")

// prescribe prints the roles that give the manager what it lacks, for kubectl
// apply; and to the other writer what there is to say about them.
func prescribe(ctx context.Context, c *cluster, out, say io.Writer, opts doctorOptions) error {
	s, err := c.state(ctx, opts)
	if err != nil {
		return err
	}

	if s.RightsProblem != "" {
		return fmt.Errorf("cannot tell what the manager may not do: %w: %s", errUnknownRights, s.RightsProblem)
	}

	if len(s.Lacks) == 0 {
		fmt.Fprintf(say, "The manager (service account %s/%s) has all rights that what is governed takes.\n",
			s.Manager.Namespace, s.Manager.ServiceAccount)

		return nil
	}

	var text strings.Builder

	for _, l := range s.Lacks {
		fmt.Fprintf(&text, "# The manager may not %s.\n", l)
	}

	for _, role := range right.Roles(s.Lacks, s.Served) {
		raw, err := yaml.Marshal(role)
		if err != nil {
			return fmt.Errorf("cannot encode ClusterRole %q: %w", role.GetName(), err)
		}

		text.WriteString("---\n")
		text.Write(raw)
	}

	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}

	return nil
}
