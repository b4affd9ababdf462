// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/replay"
)

// A widget that Hans makes larger, and what follows from that, and from that.
const (
	chainWidget = `{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: default, uid: w, generation: %d, annotations: {kausality.io/initialized: '{"v":1}'}},
  spec: {size: %s}, status: {observedGeneration: 4}}`
	chainPart = `{apiVersion: example.org/v1, kind: Part, metadata: {name: p, namespace: default, uid: p, generation: %d, annotations: {kausality.io/initialized: '{"v":1}'},
  ownerReferences: [{apiVersion: example.org/v1, kind: Widget, name: w, uid: w, controller: true}]}, spec: {size: %s}, status: {observedGeneration: 7}}`
	chainConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default, uid: c,
  ownerReferences: [{apiVersion: example.org/v1, kind: Part, name: p, uid: p, controller: true}]}, data: {size: %s}}`
	chainPolicy = `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: %s}
spec:
  match: {kind: %s, fields: [spec.size]}
  subjects: %s
  allow: [{kind: %s, mutations: [%s]}]
`
)

func chainObject(tb testing.TB, text string, args ...any) *unstructured.Unstructured {
	tb.Helper()

	raw, err := yaml.YAMLToJSON(fmt.Appendf(nil, text, args...))
	if err != nil {
		tb.Fatal(err)
	}

	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}

	return u
}

// chained is a log of what nobody allowed, in the order of hops.
func chained(tb testing.TB, hops ...int) string {
	tb.Helper()

	set := inforce.NewCache().Set(inforce.Objects{Enforcements: []v1alpha1.Enforcement{parse[v1alpha1.Enforcement](tb, governing, "Audit")}})

	requests := []request.Request{
		{Old: chainObject(tb, chainWidget, 4, "small"), New: chainObject(tb, chainWidget, 4, "large"), User: policy.User{Name: "hans"}},
		{Old: chainObject(tb, chainPart, 7, "small"), New: chainObject(tb, chainPart, 7, "large"), Parent: chainObject(tb, chainWidget, 5, "large")},
		{Old: chainObject(tb, chainConfig, "small"), New: chainObject(tb, chainConfig, "large"), Parent: chainObject(tb, chainPart, 8, "large")},
		{Old: chainObject(tb, chainPart, 7, "small"), New: chainObject(tb, chainPart, 7, "large"), Parent: chainObject(tb, chainWidget, 4, "small")},
	}

	var (
		encoder decisionlog.Encoder
		out     bytes.Buffer
	)

	entries := make([]decisionlog.Entry, 0, len(hops))

	for _, hop := range hops {
		req := requests[hop]
		req.Basis, req.Operation = set.Basis(request.Settings{}, recorded(tb)[0].Request.Basis.Now), request.OperationUpdate
		req.Resource.Resource = "things"

		if req.Parent != nil {
			req.User.Name = "controller"
		}

		d := decision.Decide(req)

		e, err := encoder.Encode(decisionlog.Asked{By: decisionlog.By{Part: decisionlog.PartMutate}}, &req, &d)
		if err != nil {
			tb.Fatal(err)
		}

		entries = append(entries, e)
	}

	write(&out, entries...)

	return out.String()
}

func TestWhatIsLetThroughLetsFollow(t *testing.T) {
	t.Parallel()

	widgets := parse[v1alpha1.AllowancePolicy](t, chainPolicy, "widgets", "Widget", "[{kind: User, name: hans, mayInitiate: true}]", "Part", "spec.size")
	parts := parse[v1alpha1.AllowancePolicy](t, chainPolicy, "parts", "Part", "[]", "ConfigMap", "data")

	for name, tc := range map[string]struct {
		reason   string
		policies []v1alpha1.AllowancePolicy
		alone    bool
		hops     []int
		// want are the kinds of what is allowed.
		want []string
	}{
		"Alone":    {"By itself nothing is there to follow from.", []v1alpha1.AllowancePolicy{widgets, parts}, true, []int{0, 1, 2}, []string{"Widget"}},
		"Chain":    {"With chains it follows, hop by hop.", []v1alpha1.AllowancePolicy{widgets, parts}, false, []int{0, 1, 2}, []string{"Widget", "Part", "ConfigMap"}},
		"Order":    {"Whatever the order of the logs.", []v1alpha1.AllowancePolicy{widgets, parts}, false, []int{2, 1, 0}, []string{"ConfigMap", "Part", "Widget"}},
		"Ends":     {"Where a policy is missing it ends.", []v1alpha1.AllowancePolicy{widgets}, false, []int{0, 1, 2}, []string{"Widget", "Part"}},
		"Before":   {"What was wanted before does not follow.", []v1alpha1.AllowancePolicy{widgets, parts}, false, []int{3, 0}, []string{"Widget"}},
		"NotThere": {"So it does where a decision is not in the logs.", []v1alpha1.AllowancePolicy{widgets, parts}, false, []int{0, 2}, []string{"Widget"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text := chained(t, tc.hops...)

			for _, workers := range []int{1, 3} {
				got, err := replay.Run(t.Context(), []replay.Log{log("a", text)}, replay.Options{
					Policies: replay.Policies{Objects: inforce.Objects{Policies: tc.policies}}, Chains: !tc.alone, Workers: workers,
				})
				if err != nil {
					t.Fatal(err)
				}

				var kinds []string

				for _, c := range got.Changes {
					if c.After == string(finding.Allowed) {
						kinds = append(kinds, c.Kind)
					}
				}

				if diff := cmp.Diff(tc.want, kinds); diff != "" || got.Decisions != len(tc.hops) || got.Unreadable > 0 {
					t.Errorf("%s\n%d workers: %+v\n-want, +got:\n%s", tc.reason, workers, got, diff)
				}
			}
		})
	}
}

func TestReadReadsWhatItCan(t *testing.T) {
	t.Parallel()

	text := chained(t, 0, 1)

	var lines []int

	got, err := replay.Read(t.Context(), []replay.Log{
		log("a", text+"{}\nno JSON\n\n"+`{"apiVersion":"log.kausality.io/v2","kind":"Decision"}`+"\n"+string(decisionlog.DroppedLine(3))+text[:len(text)/2]),
	}, func(_ string, line int, d *decisionlog.Decision) {
		if lines = append(lines, line); d.New["kind"] == nil {
			t.Errorf("line %d has no object", line)
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	want := replay.Reading{Decisions: len(lines), Dropped: 3, Problems: []replay.Problem{
		{Log: "a", Line: 4, Message: "it is no line of a log of decisions"},
		{Log: "a", Line: 5, Message: "cannot read line: invalid character 'o' in literal null (expecting 'u')"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if len(lines) < 2 || lines[0] != 2 || lines[1] != 3 {
		t.Errorf("decisions are at lines %v", lines)
	}
}
