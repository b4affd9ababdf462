// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// TestWhatKubectlStoresOfWhatWasAppliedIsMaskedAndDoesNotCount as it is there of most objects,
// and all of them would be said to be decided otherwise for that.
func TestWhatKubectlStoresOfWhatWasAppliedIsMaskedAndDoesNotCount(t *testing.T) {
	t.Parallel()

	const applied = "kubectl.kubernetes.io/last-applied-configuration"

	for name, tc := range map[string]struct {
		annotations map[string]any
		spec        map[string]any
		want        bool
	}{
		"Nothing":    {map[string]any{"a": "hunter2"}, map[string]any{"size": "hunter2"}, false},
		"Applied":    {map[string]any{applied: "hunter1"}, map[string]any{"size": "small"}, false},
		"Credential": {nil, map[string]any{"password": "hunter1"}, true},
		"Both":       {map[string]any{applied: "hunter1"}, map[string]any{"password": "hunter1"}, true},
		"FieldOfItsName": {
			map[string]any{"a": "b"}, map[string]any{applied: "hunter1"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			widget := func(color string) *unstructured.Unstructured {
				spec := map[string]any{"color": color}
				maps.Copy(spec, tc.spec)

				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "a", "annotations": tc.annotations}, "spec": spec,
				}}
			}

			req := request.Request{
				Basis:     inforce.NewCache().Set(inforce.Objects{}).Basis(request.Settings{}, time.Date(2026, 1, 6, 12, 0, 0, 0, time.UTC)),
				Operation: request.OperationUpdate, Old: widget("red"), New: widget("blue"), User: policy.User{Name: "hans"},
			}
			d := decision.Decide(req)

			e, err := new(decisionlog.Encoder).Encode(decisionlog.Asked{By: decisionlog.By{Part: decisionlog.PartMutate}}, &req, &d)
			if err != nil {
				t.Fatal(err)
			}

			var got decisionlog.Decision
			if err := json.Unmarshal(e.Decision, &got); err != nil {
				t.Fatal(err)
			}

			if got.Masked != tc.want || strings.Contains(string(e.Decision), "hunter1") {
				t.Errorf("masked is %t, want %t, in %s", got.Masked, tc.want, e.Decision)
			}
		})
	}
}
