// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// maxQuestions limits what the conditions of all policies ask the cluster's authorizer for
// one request, besides what is asked for Permissions. One policy may ask fewer, for what
// that costs.
const maxQuestions = 32

// errQuestions is the cause where a condition would have to ask more.
var errQuestions = fmt.Errorf("the conditions about the object ask the cluster's authorizer more than %d questions", maxQuestions)

// questions are what conditions have asked the cluster's authorizer.
type questions struct {
	answers map[string]questionAnswer
	// refused is how often one was not asked any more, and unanswered how often it was asked in
	// vain; failure is why, the last time.
	refused, unanswered int
	failure             error
}

type questionAnswer struct {
	decision authorizer.Decision
	reason   string
	err      error
}

// inquirer asks the cluster's authorizer what conditions ask, each question once.
type inquirer struct {
	asked    *permissions
	problems *request.Problems
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (i inquirer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key, asked := questionOf(a), &i.asked.questions

	if known, ok := asked.answers[key]; ok {
		i.note(known.err)

		return known.decision, known.reason, known.err
	}

	if len(asked.answers) >= maxQuestions {
		asked.refused++

		return authorizer.DecisionNoOpinion, "", errQuestions
	}

	var out questionAnswer

	out.decision, out.reason, out.err = i.asked.authorizer.Authorize(ctx, a)

	if asked.answers == nil {
		asked.answers = map[string]questionAnswer{}
	}

	asked.answers[key] = out
	i.note(out.err)

	return out.decision, out.reason, out.err
}

// questionOf is all that the answer to a question depends on.
func questionOf(a authorizer.Attributes) string {
	fields, fieldsErr := a.GetFieldSelector()
	labels, labelsErr := a.GetLabelSelector()

	return fmt.Sprintf("%q %q %q %q %q %q %q %q %t %q %v %v %v %v", a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetAPIVersion(),
		a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName(), a.IsResourceRequest(), a.GetPath(),
		fields, fieldsErr, labels, labelsErr)
}

// note notes that a question was asked in vain, and has that told once.
func (i inquirer) note(err error) {
	if err == nil {
		return
	}

	asked := &i.asked.questions
	if asked.unanswered == 0 {
		i.problems.Add(fmt.Errorf("%s: %w", AuthorizerAway, err))
	}

	asked.unanswered++
	asked.failure = err
}

// withinQuestions is what evaluating gives. Where it would have had to ask more than is
// asked, it is not evaluated to an end, whatever came of it. Where it asked in vain, and
// is not met, it says so: conditions see no more than a right that is not granted.
func (auth *Authority) withinQuestions(evaluate func() policy.Evaluation) policy.Evaluation {
	asked := &auth.Ledger.Asked.questions
	refused, unanswered := asked.refused, asked.unanswered
	out := evaluate()

	switch {
	case asked.refused > refused:
		return policy.Evaluation{Kind: policy.LackCEL, Missing: errQuestions.Error(), Problem: errQuestions}
	case asked.unanswered > unanswered && !out.Met:
		out.Missing += fmt.Sprintf(" (%s: %s)", AuthorizerAway, asked.failure)
		out.Short = AuthorizerAway
	}

	return out
}
