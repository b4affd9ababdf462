// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestConditionsOfAnXRAreNotSaidOnceMoreAsTheyWere puts to the webhook what Crossplane applies of an XR's status with a cache
// that is late, and what others write there.
func TestConditionsOfAnXRAreNotSaidOnceMoreAsTheyWere(t *testing.T) {
	t.Parallel()

	const (
		stored = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, managedFields: [{manager: before}]},
			status: {conditions: [{type: Kausality, status: "True", message: "generation 2: settled"}, {type: Theirs, status: "True"}]}}`
		applied = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, managedFields: [{manager: after}]},
			status: {conditions: [{type: Kausality, status: "True", message: "generation 1: settled"}, {type: Theirs, status: "True"}]}}`
	)

	for name, tc := range map[string]struct {
		user, manager, applied, want string
	}{
		"Crossplane":   {user: corpus.Crossplane, manager: resource.CompositeManager, applied: applied, want: stored},
		"AtTheEnd":     {user: corpus.Crossplane, manager: "crossplane", applied: applied, want: applied},
		"SomebodyElse": {user: "anna", manager: resource.CompositeManager, applied: applied, want: applied},
		"AsStored":     {user: corpus.Crossplane, manager: resource.CompositeManager, applied: stored, want: stored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			req := update(t, manifest(t, stored), manifest(t, tc.applied), tc.user)
			req.SubResource = "status"
			req.Options = runtime.RawExtension{Raw: []byte(`{"kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "` + tc.manager + `"}`)}

			rsp := post(t, serve(t, &webhook.Mutator{Judge: (&cluster{}).judge(t, time.Now())}), req)
			if !rsp.Allowed {
				t.Fatalf("refused: %v", rsp.Result)
			}

			got, err := yaml.YAMLToJSON(patched(t, req.Object.Raw, rsp.Patch))
			if err != nil {
				t.Fatal(err)
			}

			if want, _ := yaml.YAMLToJSON([]byte(tc.want)); !bytes.Equal(got, want) {
				t.Errorf("stored %s, want %s", got, want)
			}
		})
	}

	req := update(t, manifest(t, stored), manifest(t, stored), corpus.Crossplane)
	req.SubResource, req.Object.Raw = "status", []byte(`"no object"`)

	if rsp := post(t, serve(t, &webhook.Mutator{Judge: (&cluster{}).judge(t, time.Now())}), req); !rsp.Allowed {
		t.Errorf("what cannot be read is refused: %v", rsp.Result)
	}
}
