// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// Answers are what was found and answered while a request was decided. They are safe for
// concurrent use.
type Answers struct {
	mu         sync.Mutex
	parameters []Parameter
	checks     []Check
	// masked is true where a credential is masked in a parameter.
	masked bool
}

// Watch notes what a request finds out from here on. What it asks is replaced; where there
// is nobody to ask there still is not.
func (a *Answers) Watch(req *request.Request) {
	if params := req.Basis.Params; params != nil {
		req.Basis.Params = a.WatchParams(params)
	}

	if asked := req.Authorizer; asked != nil {
		user := req.User.Name
		req.Authorizer = authorizer.AuthorizerFunc(
			func(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
				answer, reason, err := asked.Authorize(ctx, attributes)
				a.noteCheck(checkOf(attributes, user).answered(answer, reason, err))

				return answer, reason, err
			})
	}
}

// WatchParams notes which parameters are found, of who knows no request before it is
// decided.
func (a *Answers) WatchParams(params expression.Params) expression.Params {
	return func(q expression.ParamQuery) (expression.ParamList, error) {
		found, err := params(q)
		a.noteParameter(parameterOf(q), found, err)

		return found, err
	}
}

// noteParameter notes what was found of a query, of which scope its kind is, and why it failed, without credentials.
func (a *Answers) noteParameter(p Parameter, found expression.ParamList, err error) {
	p.ClusterScoped = found.ClusterScoped

	masked := false

	for _, object := range found.Objects {
		p.Found = append(p.Found, mask.Object(withoutManagedFields(object), func([]string, any) string {
			masked = true

			return mask.Text
		}))
	}

	if err != nil {
		p.Error = err.Error()
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	a.masked = a.masked || masked

	// What was found last counts: a request is decided again where the first look was a
	// stale one.
	if i := slices.IndexFunc(a.parameters, p.same); i >= 0 {
		a.parameters[i] = p

		return
	}

	a.parameters = append(a.parameters, p)
}

func (a *Answers) noteCheck(c Check) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if i := slices.IndexFunc(a.checks, c.same); i >= 0 {
		a.checks[i] = c

		return
	}

	a.checks = append(a.checks, c)
}

// parameterOf is a query without an answer.
func parameterOf(q expression.ParamQuery) Parameter {
	out := Parameter{Namespace: q.Namespace, Name: q.Name}
	out.APIVersion, out.Kind = q.Kind.ToAPIVersionAndKind()

	if q.Selector != nil {
		text := q.Selector.String()
		out.Selector = &text
	}

	return out
}

// same reports whether another one is about the same.
func (p Parameter) same(o Parameter) bool {
	selector := p.Selector == nil && o.Selector == nil || p.Selector != nil && o.Selector != nil && *p.Selector == *o.Selector

	return selector && p.APIVersion == o.APIVersion && p.Kind == o.Kind && p.Namespace == o.Namespace && p.Name == o.Name
}

// answer gives a replay what was found, with the scope of the kind, or why nothing was.
func (p Parameter) answer() (expression.ParamList, error) {
	out := expression.ParamList{Objects: make([]map[string]any, len(p.Found)), ClusterScoped: p.ClusterScoped}
	for i, object := range p.Found {
		out.Objects[i] = object
	}

	if p.Error != "" {
		return out, errors.New(p.Error)
	}

	return out, nil
}

// Answers of an authorizer.
const (
	answerAllowed   = "allowed"
	answerDenied    = "denied"
	answerNoOpinion = "noOpinion"
	answerError     = "error"
)

// checkOf is a check without an answer, of a request that a user makes.
func checkOf(a authorizer.Attributes, user string) Check {
	out := Check{
		Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
		Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
	}

	if u := a.GetUser(); u != nil && u.GetName() != user {
		out.User = u.GetName()
	}

	if !a.IsResourceRequest() {
		out.Path = a.GetPath()
	}

	if reqs, err := a.GetFieldSelector(); err == nil {
		for _, r := range reqs {
			out.FieldSelector += "," + string(r.Operator) + " " + r.Field + " " + r.Value
		}
	}

	if reqs, err := a.GetLabelSelector(); err == nil {
		for _, r := range reqs {
			out.LabelSelector += "," + r.String()
		}
	}

	return out
}

// answered is a check with its answer.
func (c Check) answered(answer authorizer.Decision, reason string, err error) Check {
	c.Reason = reason

	switch {
	case err != nil:
		c.Answer, c.Error = answerError, err.Error()
	case answer == authorizer.DecisionAllow:
		c.Answer = answerAllowed
	case answer == authorizer.DecisionDeny:
		c.Answer = answerDenied
	default:
		c.Answer = answerNoOpinion
	}

	return c
}

// same reports whether another one is about the same.
func (c Check) same(o Check) bool {
	c.Answer, c.Reason, c.Error = o.Answer, o.Reason, o.Error

	return c == o
}

// answer is what was answered.
func (c Check) answer() (authorizer.Decision, string, error) {
	switch c.Answer {
	case answerAllowed:
		return authorizer.DecisionAllow, c.Reason, nil
	case answerDenied:
		return authorizer.DecisionDeny, c.Reason, nil
	case answerError:
		return authorizer.DecisionNoOpinion, c.Reason, errors.New(c.Error)
	default:
		return authorizer.DecisionNoOpinion, c.Reason, nil
	}
}
