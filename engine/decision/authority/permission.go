// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
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
	// Failed is why it could not be asked, or not of all; nil where it could.
	Failed error
}

var (
	errNoAuthorizer = errors.New("nobody is granted it here, for the cluster's authorizer is asked by the webhook alone")
	errMachine      = errors.New("a service account initiates nothing by a Permission, and has to be named as a subject")
	// ErrTooMany is why a Permission is not asked for.
	ErrTooMany = fmt.Errorf("the policies about the object have more than %d Permissions", maxChecks-1)
)

// HasPermission reports whether the user may start a chain by a policy's Permission.
func (auth *Authority) HasPermission(p *policy.Policy) bool {
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

// AuthorizerAway is said where the cluster's authorizer does not answer.
const AuthorizerAway = "the cluster's authorizer cannot be asked"

// cannotAsk is why nobody is granted anything by a Permission in this request; nil where
// it can be asked.
func (auth *Authority) cannotAsk() error {
	switch {
	case auth.User.Machine():
		return errMachine
	case auth.Ledger.Asked.authorizer == nil:
		return errNoAuthorizer
	case auth.Ledger.Asked.Failed != nil:
		return auth.Ledger.Asked.Failed
	}

	// Where not all can be asked none is granted: which ones would depend on their names.
	names := map[string]bool{}

	for _, p := range auth.Policies.For(auth.kind) {
		if name := p.Permission(); name != "" {
			names[name] = true
		}
	}

	if len(names)+1 > maxChecks {
		auth.Ledger.Asked.Failed = ErrTooMany
		auth.Problems.Add(ErrTooMany)
	}

	return auth.Ledger.Asked.Failed
}

// ask asks the cluster's authorizer, once for each verb. Whoever gives it has bound it to
// the context of the request.
//
//nolint:contextcheck,nolintlint // As said above; the linter looks at those who call it.
func (auth *Authority) ask(verb string) (bool, error) {
	if ok, known := auth.Ledger.Asked.answers[verb]; known {
		return ok, nil
	}

	got, _, err := auth.Ledger.Asked.authorizer.Authorize(context.Background(), authorizer.AttributesRecord{
		User: request.UserInfo(auth.User), Verb: verb, Namespace: auth.home, Name: auth.Objects.Target().GetName(), ResourceRequest: true,
		APIGroup: auth.Objects.Resource.Group, APIVersion: "*", Resource: auth.Objects.Resource.Resource,
		Subresource: v1alpha1.SubresourceKausality,
	})
	if err != nil {
		auth.Ledger.Asked.Failed = fmt.Errorf("%s for %s of %s/%s: %w",
			AuthorizerAway, verb, auth.Objects.Resource, v1alpha1.SubresourceKausality, err)
		auth.Problems.Add(auth.Ledger.Asked.Failed)

		return false, auth.Ledger.Asked.Failed
	}

	if auth.Ledger.Asked.answers == nil {
		auth.Ledger.Asked.answers = map[string]bool{}
	}

	ok := got == authorizer.DecisionAllow
	auth.Ledger.Asked.answers[verb] = ok

	return ok, nil
}

// LackingPermission says why a policy's Permission does not let the user initiate; empty
// where it has none.
func (auth *Authority) LackingPermission(p *policy.Policy) string {
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
		policy.VerbsOf(name)[1], auth.Objects.Resource, auth.Objects.Target().GetName(), v1alpha1.SubresourceKausality, where)
}
