// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

func TestARequestAboutNothingIsAProblem(t *testing.T) {
	for name, req := range map[string]request.Request{
		"Nothing": {Operation: request.OperationUpdate},
		"Empty":   {Operation: request.OperationCreate, New: &unstructured.Unstructured{}},
	} {
		if d := decision.Decide(req); len(d.Problems) != 1 || d.Object != nil || len(d.Findings) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheOperationFollowsTheObjects(t *testing.T) {
	obj := object(t, claim)

	for name, tc := range map[string]struct {
		req  request.Request
		want string
	}{
		"Create": {request.Request{New: obj}, "create"},
		"Delete": {request.Request{Operation: request.OperationUpdate, Old: obj}, "delete"},
		"Over":   {request.Request{Operation: request.OperationCreate, Old: obj, New: obj}, "create"},
	} {
		if d := decision.Decide(tc.req); len(d.Findings) != 1 || d.Findings[0].Change.Field != tc.want {
			t.Errorf("%s: %+v", name, d.Findings)
		}
	}
}
