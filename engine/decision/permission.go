// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxChecks limits what the cluster's authorizer is asked for one request by Permissions: the
// general verb, and one for each of them.
const maxChecks = 8

// permissions are what the cluster's authorizer has answered of the user.
type permissions struct {
	answers map[string]bool
	// questions are what conditions have asked of it.
	questions questions
	// failed is why it could not be asked, or not of all; nil where it could.
	failed error
}

var (
	errNoAuthorizer = errors.New("nobody is granted it here, for the cluster's authorizer is asked by the webhook alone")
	errMachine      = errors.New("a service account initiates nothing by a Permission, and has to be named as a subject")
	errTooMany      = fmt.Errorf("the policies about the object have more than %d Permissions", maxChecks-1)
)

// permitted reports whether the user may start a chain by a policy's Permission.
func (s *subjects) permitted(p *policy.Policy) bool {
	name := p.Permission()
	if name == "" || s.cannotAsk() != nil {
		return false
	}

	for _, verb := range policy.VerbsOf(name) {
		if ok, err := s.ask(verb); err != nil || ok {
			return ok && err == nil
		}
	}

	return false
}

// authorizerAway is said where the cluster's authorizer does not answer.
const authorizerAway = "the cluster's authorizer cannot be asked"

// cannotAsk is why nobody is granted anything by a Permission in this request; nil where
// it can be asked.
func (s *subjects) cannotAsk() error {
	switch {
	case s.User.Machine():
		return errMachine
	case s.Authorizer == nil:
		return errNoAuthorizer
	case s.permissions.failed != nil:
		return s.permissions.failed
	}

	// Where not all can be asked none is granted: which ones would depend on their names.
	names := map[string]bool{}

	for _, p := range s.Policies.For(s.groupKind()) {
		if name := p.Permission(); name != "" {
			names[name] = true
		}
	}

	if len(names)+1 > maxChecks {
		s.permissions.failed = errTooMany
		s.problem(errTooMany)
	}

	return s.permissions.failed
}

// ask asks the cluster's authorizer, once for each verb. Whoever gives it has bound it to
// the context of the request.
//
//nolint:contextcheck,nolintlint // As said above; the linter looks at those who call it.
func (s *subjects) ask(verb string) (bool, error) {
	if ok, known := s.permissions.answers[verb]; known {
		return ok, nil
	}

	got, _, err := s.Authorizer.Authorize(context.Background(), authorizer.AttributesRecord{
		User: userInfo(s.User), Verb: verb, Namespace: s.home(), Name: s.target().GetName(), ResourceRequest: true,
		APIGroup: s.Resource.Group, APIVersion: "*", Resource: s.Resource.Resource, Subresource: v1alpha1.SubresourceKausality,
	})
	if err != nil {
		s.permissions.failed = fmt.Errorf("%s for %s of %s/%s: %w",
			authorizerAway, verb, s.Resource, v1alpha1.SubresourceKausality, err)
		s.problem(s.permissions.failed)

		return false, s.permissions.failed
	}

	if s.permissions.answers == nil {
		s.permissions.answers = map[string]bool{}
	}

	ok := got == authorizer.DecisionAllow
	s.permissions.answers[verb] = ok

	return ok, nil
}

// userInfo is a user as authorizers know one.
func userInfo(u policy.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// home is the namespace that an object belongs to, in which permissions are asked and
// bindings found; empty for none. A cluster-scoped XR belongs to that of its Claim, where
// the Claim says so, too, and has before: one write must not take an XR to a namespace and
// change it.
func (l *lineage) home() string {
	u := l.target()
	if namespace := resource.String(u.Object, "metadata", "namespace"); namespace != "" || l.Parent == nil || !resource.IsClaim(l.Parent) {
		return namespace
	}

	if l.Old != nil && !resource.BoundToClaim(l.Old) {
		return ""
	}

	return l.Parent.GetNamespace()
}

// lackingPermission says why a policy's Permission does not let the user initiate; empty
// where it has none.
func (s *subjects) lackingPermission(p *policy.Policy) string {
	name := p.Permission()
	if name == "" {
		return ""
	}

	if err := s.cannotAsk(); err != nil {
		return err.Error()
	}

	where := ""
	if namespace := s.home(); namespace != "" {
		where = " in namespace " + namespace
	}

	return fmt.Sprintf("kubectl auth can-i %s %s/%s --subresource=%s says no%s",
		policy.VerbsOf(name)[1], s.Resource, s.target().GetName(), v1alpha1.SubresourceKausality, where)
}
