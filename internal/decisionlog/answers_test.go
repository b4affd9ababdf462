// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// answer is one to whatever is asked.
type answer struct {
	color   string
	granted authorizer.Decision
	err     error
}

func (a *answer) params(expression.ParamQuery) (expression.ParamList, error) {
	return expression.ParamList{Objects: []map[string]any{{"color": a.color}}}, a.err
}

func (a *answer) authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return a.granted, "", a.err
}

// answersTo are those that a request gets, about two parameters and two users.
func answersTo(t *testing.T, req *request.Request) []string {
	t.Helper()

	palette := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Palette"}

	queries := []expression.ParamQuery{{Kind: palette, Name: "a"}, {Kind: palette, Selector: labels.SelectorFromSet(labels.Set{"a": "b"})}}
	out := make([]string, 0, 2*len(queries))

	for _, q := range queries {
		found, err := req.Basis.Params(q)
		out = append(out, fmt.Sprint(found.Objects, err))
	}

	for _, name := range []string{"anna", "hans"} {
		got, _, err := req.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name}, Verb: "scale"})
		out = append(out, fmt.Sprint(got, err))
	}

	return out
}

// TestTheLastAnswerIsRecorded for by that it was decided: a request is decided again where the first look was a stale one.
func TestTheLastAnswerIsRecorded(t *testing.T) {
	t.Parallel()

	red, blue := answer{"red", authorizer.DecisionDeny, nil}, answer{"blue", authorizer.DecisionAllow, nil}
	failed := answer{"", authorizer.DecisionNoOpinion, errors.New("boom")} //nolint:err113 // Of this test.

	for name, tc := range map[string]struct {
		reason  string
		answers []answer
	}{
		"Once":        {"Nothing is asked again.", []answer{red}},
		"Changed":     {"Somebody has changed it meanwhile.", []answer{red, blue}},
		"FailedFirst": {"It could be read at last.", []answer{failed, blue}},
		"FailedLast":  {"Or not any more.", []answer{blue, failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			now, answers := &answer{}, &decisionlog.Answers{}
			req := request.Request{Authorizer: authorizer.AuthorizerFunc(now.authorize)}
			req.Basis.Params = now.params
			answers.Watch(&req)

			var want []string

			for _, *now = range tc.answers {
				want = answersTo(t, &req)
			}

			line, again, _ := encoded(t, decisionlog.Asked{Answers: answers}, req)
			if diff := cmp.Diff(want, answersTo(t, &again)); diff != "" {
				t.Errorf("%s\n-last, +recorded:\n%s", tc.reason, diff)
			}

			if params, checks := strings.Count(line, `"Palette"`), strings.Count(line, `"verb"`); params != 2 || checks != 2 {
				t.Errorf("%s\n%d parameters and %d checks in %s", tc.reason, params, checks, line)
			}
		})
	}
}
