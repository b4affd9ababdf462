// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

func TestARequestAboutNothingIsAProblem(t *testing.T) {
	for name, req := range map[string]decision.Request{
		"Nothing": {Operation: decision.OperationUpdate},
		"Empty":   {Operation: decision.OperationCreate, New: &unstructured.Unstructured{}},
	} {
		if d := decision.Decide(req); len(d.Problems) != 1 || d.Object != nil || len(d.Findings) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheOperationFollowsTheObjects(t *testing.T) {
	obj := object(t, claim)

	for name, tc := range map[string]struct {
		req  decision.Request
		want string
	}{
		"Create": {decision.Request{New: obj}, "create"},
		"Delete": {decision.Request{Operation: decision.OperationUpdate, Old: obj}, "delete"},
		"Over":   {decision.Request{Operation: decision.OperationCreate, Old: obj, New: obj}, "create"},
	} {
		if d := decision.Decide(tc.req); len(d.Findings) != 1 || d.Findings[0].Change.Field != tc.want {
			t.Errorf("%s: %+v", name, d.Findings)
		}
	}
}
