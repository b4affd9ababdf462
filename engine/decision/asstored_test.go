// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestWhatAProviderTakesAwayIsNotStoredAgain is about what Crossplane applies again though a provider has taken it away, as it did before.
func TestWhatAProviderTakesAwayIsNotStoredAgain(t *testing.T) {
	t.Parallel()

	const (
		xr     = "{apiVersion: example.org/v1, kind: Can, metadata: {name: c, uid: xr, generation: 4, annotations: {kausality.io/initialized: '{\"v\":1}'}}, spec: {}}"
		object = `{apiVersion: kubernetes.crossplane.io/v1alpha2, kind: Object, metadata: {name: o, uid: o, generation: 3,
			ownerReferences: [{apiVersion: example.org/v1, kind: Can, name: c, uid: xr, controller: true}],
			managedFields: [{manager: %s, operation: Apply, fieldsV1: {"f:spec": {"f:forProvider": {"f:manifest": {"f:metadata": {"f:labels": {}, "f:name": {}}, "f:env": {}}}}}}],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: '{v: 1, state: Closed, generation: 3}'}},
			spec: {managementPolicies: [Observe], forProvider: {manifest: %s}}}`
		provider = "system:serviceaccount:crossplane-system:provider-kubernetes"
	)

	manager := managedfields.ManagerOf(fixture.Parse(t, xr))

	for name, tc := range map[string]struct {
		stored, asked, want string
		user                string
	}{
		"An empty map":        {"{metadata: {name: m}}", "{metadata: {name: m, labels: {}}}", "{metadata: {name: m}}", corpus.Crossplane},
		"A map of nulls":      {"{metadata: {name: m}}", "{metadata: {name: m, labels: {a: null}}}", "{metadata: {name: m}}", corpus.Crossplane},
		"An empty list":       {"{metadata: {name: m}}", "{metadata: {name: m}, env: []}", "{metadata: {name: m}}", corpus.Crossplane},
		"The other way":       {"{metadata: {name: m, labels: {}}}", "{metadata: {name: m}}", "{metadata: {name: m, labels: {}}}", corpus.Crossplane},
		"By the provider":     {"{metadata: {name: m, labels: {}}}", "{metadata: {name: m}}", "{metadata: {name: m}}", provider},
		"Without a gate":      {"{metadata: {name: m}}", "{metadata: {name: m, labels: {}}}", "{metadata: {name: m, labels: {}}}", corpus.Crossplane},
		"Beside what is held": {"{metadata: {name: m}, size: 1}", "{metadata: {name: m, labels: {}}, size: 2}", "{metadata: {name: m}, size: 1}", corpus.Crossplane},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			stored, asked := fixture.Parse(t, fmt.Sprintf(object, manager, tc.stored)), fixture.Parse(t, fmt.Sprintf(object, manager, tc.asked))

			if name == "Without a gate" {
				stored.SetAnnotations(nil)
				asked.SetAnnotations(nil)
			}

			recorded, err := wish.RecordOf(map[string]any{"spec": map[string]any{"forProvider": resource.Map(asked.Object, "spec", "forProvider")}}).Format(asked.GetAPIVersion(), asked.GetKind())
			if err != nil {
				t.Fatal(err)
			}

			for _, u := range []*unstructured.Unstructured{stored, asked} {
				annotations := map[string]string{v1alpha1.AnnotationWish: recorded}
				maps.Copy(annotations, u.GetAnnotations())
				u.SetAnnotations(annotations)
			}

			d := decision.Decide(request.Request{
				Basis: inforce.NewCache().Set(inforce.Objects{}).Basis(
					request.Settings{Crossplane: corpus.Crossplane, Manager: corpus.Manager}, time.Date(2026, 1, 6, 12, 0, 0, 0, time.UTC)),
				Operation: request.OperationUpdate, Parent: fixture.Parse(t, xr), FieldManager: manager,
				Old: stored, New: asked,
				User: policy.User{Name: tc.user, Groups: policy.ServiceAccountGroups(tc.user)},
			})

			want := fixture.Parse(t, "{apiVersion: v1, kind: K, spec: "+tc.want+"}")
			if diff := cmp.Diff(want.Object["spec"], any(resource.Map(d.Object.Object, "spec", "forProvider", "manifest"))); diff != "" {
				t.Errorf("-want, +got:\n%s\n%+v", diff, d.Findings)
			}

			if put := len(d.Kept)+len(d.Held) > 0; put == (tc.want == tc.asked) {
				t.Errorf("put back: %v, held %v", d.Kept, d.Held)
			}
		})
	}
}
