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
)

// maxChecks limits what the cluster's authorizer is asked for one request by Permissions: the
// general verb, and one for each of them.
const maxChecks = 8

// permissions are what the cluster's authorizer has answered of the user.
type permissions struct {
	// authorizer is nil where nobody can ask it.
	authorizer authorizer.UnconditionalAuthorizer
	answers    map[string]bool
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

// hasPermission reports whether the user may start a chain by a policy's Permission.
func (auth *authority) hasPermission(p *policy.Policy) bool {
	name := p.Permission()
	if name == "" || auth.cannotAsk() != nil {
		return false
	}

	for _, verb := range policy.VerbsOf(name) {
		if ok, err := auth.ask(verb); err != nil || ok {
			return ok && err == nil
		}
	}

	return false
}

// authorizerAway is said where the cluster's authorizer does not answer.
const authorizerAway = "the cluster's authorizer cannot be asked"

// cannotAsk is why nobody is granted anything by a Permission in this request; nil where
// it can be asked.
func (auth *authority) cannotAsk() error {
	switch {
	case auth.user.Machine():
		return errMachine
	case auth.ledger.asked.authorizer == nil:
		return errNoAuthorizer
	case auth.ledger.asked.failed != nil:
		return auth.ledger.asked.failed
	}

	// Where not all can be asked none is granted: which ones would depend on their names.
	names := map[string]bool{}

	for _, p := range auth.Policies.For(auth.kind) {
		if name := p.Permission(); name != "" {
			names[name] = true
		}
	}

	if len(names)+1 > maxChecks {
		auth.ledger.asked.failed = errTooMany
		auth.problems.add(errTooMany)
	}

	return auth.ledger.asked.failed
}

// ask asks the cluster's authorizer, once for each verb. Whoever gives it has bound it to
// the context of the request.
//
//nolint:contextcheck,nolintlint // As said above; the linter looks at those who call it.
func (auth *authority) ask(verb string) (bool, error) {
	if ok, known := auth.ledger.asked.answers[verb]; known {
		return ok, nil
	}

	got, _, err := auth.ledger.asked.authorizer.Authorize(context.Background(), authorizer.AttributesRecord{
		User: userInfo(auth.user), Verb: verb, Namespace: auth.home, Name: auth.o.target().GetName(), ResourceRequest: true,
		APIGroup: auth.o.Resource.Group, APIVersion: "*", Resource: auth.o.Resource.Resource, Subresource: v1alpha1.SubresourceKausality,
	})
	if err != nil {
		auth.ledger.asked.failed = fmt.Errorf("%s for %s of %s/%s: %w",
			authorizerAway, verb, auth.o.Resource, v1alpha1.SubresourceKausality, err)
		auth.problems.add(auth.ledger.asked.failed)

		return false, auth.ledger.asked.failed
	}

	if auth.ledger.asked.answers == nil {
		auth.ledger.asked.answers = map[string]bool{}
	}

	ok := got == authorizer.DecisionAllow
	auth.ledger.asked.answers[verb] = ok

	return ok, nil
}

// userInfo is a user as authorizers know one.
func userInfo(u policy.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// lackingPermission says why a policy's Permission does not let the user initiate; empty
// where it has none.
func (auth *authority) lackingPermission(p *policy.Policy) string {
	name := p.Permission()
	if name == "" {
		return ""
	}

	if err := auth.cannotAsk(); err != nil {
		return err.Error()
	}

	where := ""
	if namespace := auth.home; namespace != "" {
		where = " in namespace " + namespace
	}

	return fmt.Sprintf("kubectl auth can-i %s %s/%s --subresource=%s says no%s",
		policy.VerbsOf(name)[1], auth.o.Resource, auth.o.target().GetName(), v1alpha1.SubresourceKausality, where)
}
