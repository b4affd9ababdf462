// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

var errTimeout = errors.New("request timed out")

// limits are as many objects that hold parameters as are said, in a namespace.
func limits(namespace string, n int) []map[string]any {
	out := make([]map[string]any, n)
	for i := range out {
		meta := map[string]any{"name": strconv.Itoa(i)}
		if namespace != "" {
			meta["namespace"] = namespace
		}

		out[i] = map[string]any{"apiVersion": "example.org/v1", "kind": "Limit", "metadata": meta}
	}

	return out
}

func TestAPolicyIsDecidedByWholeAnswersAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		home   string
		list   []map[string]any
		err    error
		// missing is part of what is; empty where the policy is met.
		missing string
		// problem is true where somebody has to correct something, unread where another
		// time may do.
		problem, unread bool
	}{
		"Hundred":   {"A hundred are read.", "shop", limits("shop", expression.MaxParams), nil, "", false, false},
		"More":      {"More are not, and which ones are is chance.", "shop", limits("shop", expression.MaxParams+1), nil, "more than 100 are found", true, false},
		"None":      {"None is no problem.", "shop", nil, nil, "there is no Limit", false, false},
		"Others":    {"Those of other namespaces say nothing of this one.", "shop", append(limits("shop", 1), limits("bank", 1)...), nil, "in another namespace", true, true},
		"Nowhere":   {"Nor of what is in none.", "", limits("bank", 1), nil, "names no namespace", true, false},
		"OfCluster": {"What is in none is of all.", "shop", limits("", 2), nil, "", false, false},
		"Unread":    {"What fails may do another time.", "shop", nil, errTimeout, "timed out", true, true},
		"Awaited":   {"What is still to be sent is no problem.", "shop", nil, fmt.Errorf("wait: %w", policy.ErrParamsAwaited), "not been sent yet", false, false},
		"Unsaid":    {"That no namespace is known will not change.", "", nil, policy.ErrParamNamespace, "names no namespace", true, false},
	}

	p := compile(t, `
spec:
  paramKind: {apiVersion: example.org/v1, kind: Limit}
  paramRef: {selector: {}}
  match: {kind: Widget, fields: [spec.size]}
  allow: [{kind: ConfigMap, mutations: [data]}]`)

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := p.Evaluate(expression.Input{
				Object: map[string]any{}, Home: tc.home,
				Params: func(expression.ParamQuery) (expression.ParamList, error) {
					return expression.ParamList{Objects: tc.list}, tc.err
				},
			})

			if v.Met != (tc.missing == "") || !strings.Contains(v.Missing, tc.missing) {
				t.Errorf("%s\nmet %t: %q, want %q", tc.reason, v.Met, v.Missing, tc.missing)
			}

			if got := v.Problem != nil; got != tc.problem {
				t.Errorf("%s\nproblem %v", tc.reason, v.Problem)
			}

			if got := policy.Unread(nil, v.Problem) != nil; got != tc.unread {
				t.Errorf("%s\nunread %t: %v", tc.reason, got, v.Problem)
			}

			if !v.Met && v.Kind != policy.LackParameter {
				t.Errorf("%s\nit lacks %s", tc.reason, v.Kind)
			}
		})
	}
}

// TestAParameterOfNoNamespaceIsNamedWithoutOne whatever the object's namespace is, or the
// policy's paramRef names.
func TestAParameterOfNoNamespaceIsNamedWithoutOne(t *testing.T) {
	const text = `
spec:
  paramKind: {apiVersion: example.org/v1, kind: Limit}
  paramRef: %s
  match: {kind: Widget, fields: [spec.size]}
  allow: [{kind: ConfigMap, mutations: [data]}]`

	cases := map[string]struct {
		ref           string
		clusterScoped bool
		err           error
		missing, text string
	}{
		"Named":     {"{name: all}", true, nil, `there is no Limit "all", named by its paramRef`, `Limit "all"`},
		"Elsewhere": {"{name: all, namespace: bank}", true, nil, `there is no Limit "all", named by its paramRef`, `Limit "all"`},
		"Selected":  {"{selector: {}}", true, nil, `there is no Limit of labels "", named by its paramRef`, `Limit of labels ""`},
		"Unread":    {"{name: all}", true, errTimeout, `its parameters cannot be read: Limit "all": request timed out`, `Limit "all"`},
		"Of":        {"{name: all}", false, nil, `there is no Limit "shop/all", named by its paramRef`, `Limit "shop/all"`},
		"Unknown":   {"{name: all}", false, errTimeout, `its parameters cannot be read: Limit "shop/all": request timed out`, `Limit "shop/all"`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := compile(t, fmt.Sprintf(text, tc.ref))
			in := expression.Input{Object: map[string]any{}, Home: "shop", Params: func(expression.ParamQuery) (expression.ParamList, error) {
				return expression.ParamList{ClusterScoped: tc.clusterScoped}, tc.err
			}}

			if got := p.Evaluate(in).Missing; got != tc.missing {
				t.Errorf("it lacks %q, want %q", got, tc.missing)
			}

			if got := p.Results(in); len(got) != 1 || got[0].Text != tc.text {
				t.Errorf("the results are %+v, want one of %s", got, tc.text)
			}
		})
	}
}
