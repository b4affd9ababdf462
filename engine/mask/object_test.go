// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package mask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// TestWhatIsHiddenOfAnObjectIsReplaced and nothing else of it.
func TestWhatIsHiddenOfAnObjectIsReplaced(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason, object, peer, want string
	}{
		"Secret":   {"Of a Secret the keys are shown.", `{kind: Secret, type: Opaque, data: {user: x}}`, `{}`, `{kind: Secret, type: Opaque, data: {user: "data.user=x"}}`},
		"Number":   {"A number is hidden as well.", `{spec: {password: 7}}`, `{}`, `{spec: {password: spec.password=7}}`},
		"List":     {"Indices are no fields.", `{spec: {env: [{name: A, value: b}, {name: DB_PASSWORD, value: x}]}}`, `{}`, `{spec: {env: [{name: A, value: b}, {name: DB_PASSWORD, value: spec.env.value=x}]}}`},
		"Peer":     {"What another version hides is hidden.", `{spec: {m: {kind: ConfigMap, data: {user: x}}}}`, `{spec: {m: {kind: Secret, data: {user: x}}}}`, `{spec: {m: {kind: ConfigMap, data: {user: spec.m.data.user=x}}}}`},
		"PeerList": {"Also in a list.", `{spec: {m: [{kind: ConfigMap, data: {user: x}}]}}`, `{spec: {m: [{kind: Secret, data: {user: x}}]}}`, `{spec: {m: [{kind: ConfigMap, data: {user: spec.m.data.user=x}}]}}`},
		"Managed": {
			"The names in managedFields quote values.",
			`{metadata: {managedFields: [{fieldsV1: {"f:spec": {"f:tokens": {'v:"x"': {}}, "f:urls": {'v:"a://u:p@h"': {}, 'v:"b"': {}}, "f:env": {'k:{"name":"A"}': {".": {}}}}}}]}}`,
			`{}`,
			`{metadata: {managedFields: [{fieldsV1: {"f:spec": {"f:tokens": {'v:"spec.tokens=x"': {}}, "f:urls": {'v:"spec.urls=a://u:p@h"': {}, 'v:"b"': {}}, "f:env": {'k:{"name":"A"}': {".": {}}}}}}]}}`,
		},
		"Ordinary": {"All else stays.", `{spec: {size: small, list: [1, null, true]}}`, `{}`, `{spec: {size: small, list: [1, null, true]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := object(t, tc.object)
			got := mask.Object(in, func(at []string, v any) string { return fmt.Sprintf("%s=%v", strings.Join(at, "."), v) }, object(t, tc.peer))

			if diff := cmp.Diff(object(t, tc.want), got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(object(t, tc.object), in); diff != "" {
				t.Errorf("it was modified, -want, +got:\n%s", diff)
			}
		})
	}

	if got := mask.Object(nil, nil); got != nil {
		t.Errorf("nothing reads %v", got)
	}
}
