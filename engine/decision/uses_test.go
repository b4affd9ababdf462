// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestAUseIsOnRecordAsLongAsItsAllowance has somebody change a child while its root is ready, and what the root has given counts as
// served, and then an operator while it is not.
func TestAUseIsOnRecordAsLongAsItsAllowance(t *testing.T) {
	ready := func(status string) string {
		return fmt.Sprintf(`
apiVersion: example.org/v1
kind: Root
metadata:
  name: r
  uid: root-uid
  generation: 13
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/record: '{"v":1,"request":"12.1"}'
    kausality.io/allowances: |
      - {kind: Child, mutation: spec.size, generation: 12, id: "12.1", initiator: hans, source: {type: Policy, field: metadata.annotations.x}, trace: [{kind: Root, name: r, generation: 12, request: 1, field: metadata.annotations.x}]}
spec: {size: large}
status: {observedGeneration: 13, conditions: [{type: Ready, status: %q, observedGeneration: 13}]}
`, status)
	}

	u := object(t, held)
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationRecord: `{"v":1,"used":[{"id":"12.1","field":"metadata.annotations.x"}]}`})

	obj := u.DeepCopy()
	resource.Map(obj.Object, "spec")["engine"] = "mysql"

	req := requestFor(t, policy.User{Name: "hans"}, held, held, ready("True"))
	req.Old, req.New = u, obj
	req.Basis.Policies = set(t, `
kind: AllowancePolicy
metadata: {name: child}
spec:
  match: {apiGroup: example.org, kind: Child, fields: [spec.engine]}
  subjects: [{kind: User, name: hans, mayInitiate: true}]
  allow: []
`)

	u = decision.Decide(req).Object
	u = write{by: operator, root: root{generation: 13, raw: ready("False")}, spec: map[string]any{"size": "huge"}}.decide(t, u)

	if got := resource.String(u.Object, "spec", "size"); got != "small" {
		t.Errorf("size: %s, want small: it was changed by that allowance before", got)
	}
}
