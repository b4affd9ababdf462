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
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// errOnlyRoles is the cause where a flag says which roles to print, and none are to
// be.
var errOnlyRoles = errors.New("--crossplane, --for and --all-rights are about the roles that are printed: they need --roles")

// maxQuestions is how many questions are asked at once.
const maxQuestions = 20

// rights finds out what the manager may not do that it has to.
func (c examination) rights(ctx context.Context, s *doctor.State, opts doctorOptions) {
	needs := doctor.Needs(s, opts.platform)

	for _, name := range opts.owners {
		needs = append(needs, right.Read(schema.ParseGroupResource(name)))
	}

	needs = right.Join(needs)

	if opts.held {
		s.MissingRights = right.Missing(needs, func(right.Right) bool { return false })

		return
	}

	may, err := c.answers(ctx, s.Manager, needs)
	if err != nil {
		s.RightsProblem = err

		return
	}

	s.MissingRights = right.Missing(needs, func(r right.Right) bool { return may[r] })
}

// answers says which of the rights that some needs take the manager has. It asks for
// the wide ones first, which may answer for all others.
func (c examination) answers(ctx context.Context, m doctor.Manager, needs []right.Need) (map[right.Right]bool, error) {
	var one, wide []right.Right

	for _, n := range needs {
		for _, r := range n.Rights() {
			one, wide = append(one, r), append(wide, r.Wide()...)
		}
	}

	may := map[right.Right]bool{}
	if err := c.ask(ctx, m, wide, may); err != nil {
		return nil, err
	}

	var left []right.Right

	for _, r := range one {
		if slices.ContainsFunc(r.Wide(), func(w right.Right) bool { return may[w] }) {
			may[r] = true
		} else {
			left = append(left, r)
		}
	}

	return may, c.ask(ctx, m, left, may)
}

// ask adds what the manager may do of some rights.
func (c examination) ask(ctx context.Context, m doctor.Manager, list []right.Right, may map[right.Right]bool) error {
	var (
		mu    sync.Mutex
		group errgroup.Group
	)

	group.SetLimit(maxQuestions)

	seen := map[right.Right]bool{}

	for _, r := range list {
		if seen[r] {
			continue
		}

		seen[r] = true

		group.Go(func() error {
			allowed, err := c.may(ctx, m, r)

			mu.Lock()
			defer mu.Unlock()

			may[r] = allowed

			return err
		})
	}

	return group.Wait()
}

// served are the kinds that the API server serves, as far as it says: those that can be
// changed, and those that can be read.
func (c examination) served() (changed, read []right.Kind) {
	lists, _ := c.discovery.ServerPreferredResources() // What one group fails to list is no reason to leave out the others.

	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range l.APIResources {
			composite := slices.ContainsFunc(r.Categories, func(c string) bool { return c == "claim" || c == "composite" })
			kind := right.Kind{
				Group: gv.Group, Kind: r.Kind, Resource: r.Name,
				Crossplane: composite || slices.Contains(r.Categories, "managed"), Conditions: composite,
			}

			// What cannot be changed the manager is never asked about.
			if slices.Contains(r.Verbs, "get") && slices.Contains(r.Verbs, "update") {
				changed = append(changed, kind)
			}

			if right.Unsupported(r.Verbs) == "" {
				read = append(read, kind)
			}
		}
	}

	return changed, read
}

// may asks whether the manager may do something in all namespaces.
func (c examination) may(ctx context.Context, m doctor.Manager, r right.Right) (bool, error) {
	resource, sub := r.Split()
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   serviceaccount.MakeUsername(m.Namespace, m.ServiceAccount),
			Groups: append(serviceaccount.MakeGroupNames(m.Namespace), user.AllAuthenticated),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub,
			},
		},
	}

	err := c.reviewed(ctx, authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"), review)

	return review.Status.Allowed, err
}

// errUnknownRights is the cause where the API server does not say what the manager
// may do.
var errUnknownRights = errors.New("whoever asks has to be allowed to create subjectaccessreviews.authorization.k8s.io")

// prescribe prints the roles that give the manager what it lacks, for kubectl
// apply; and to the other writer what there is to say about them.
func prescribe(ctx context.Context, c *cluster, out, say io.Writer, opts doctorOptions) error {
	s, err := examination{c}.state(ctx, opts)
	if err != nil {
		return err
	}

	if apierrors.IsForbidden(s.RightsProblem) {
		return fmt.Errorf("cannot tell what the manager may not do: %w: %w", errUnknownRights, s.RightsProblem)
	}

	if s.RightsProblem != nil {
		return fmt.Errorf("cannot tell what the manager may not do: %w", s.RightsProblem)
	}

	params := doctor.Parameters(s, opts.held)

	if len(s.MissingRights)+len(params) == 0 {
		fmt.Fprintf(say, "The manager (service account %s/%s) has all rights that what is governed takes.\n",
			s.Manager.Namespace, s.Manager.ServiceAccount)

		return nil
	}

	var text strings.Builder

	for _, l := range s.MissingRights {
		if opts.held {
			fmt.Fprintf(&text, "# The manager has to be allowed to %s.\n", l)
		} else {
			fmt.Fprintf(&text, "# The manager may not %s.\n", l)
		}
	}

	roles := right.Roles(s.MissingRights, s.Served)

	for _, gr := range params {
		fmt.Fprintf(&text, "# The manager and Crossplane have to be allowed to read %s, which hold parameters of policies.\n", gr)
		roles = append(roles, right.RoleOfParameters(gr))
	}

	for _, role := range roles {
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
