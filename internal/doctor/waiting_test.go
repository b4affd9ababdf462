// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsHeldBelowAnXRThatRunsTheFunctionNoMoreIsFound(t *testing.T) {
	const (
		xr = `
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: NAME, namespace: a, uid: NAME}
spec: {crossplane: {}}
status: {conditions: [{type: Kausality, status: "Unknown", reason: REASON}]}
`
		bucket = `
apiVersion: aws.example.org/v1
kind: Bucket
metadata: {name: of-NAME, namespace: a, uid: of-NAME, ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: NAME, uid: NAME, controller: true}],
  annotations: {kausality.io/gate: '{"v":1,"state":"Closed","generation":7,"since":"2026-01-01T00:00:00Z"}',
    kausality.io/held: '[{"field":"spec.forProvider.size","from":"small","to":"large","missing":"no"}]'}}
spec: {managementPolicies: [Observe], forProvider: {size: small}}
`
	)

	of := func(text, name, reason string) List {
		return read(t, strings.NewReplacer("NAME", name, "REASON", reason).Replace(text))
	}

	s := &State{
		Composites: of(xr, "runs", "Held").Items, Former: of(xr, "dropped", "NotRun").Items,
		Managed: append(of(bucket, "runs", "").Items, of(bucket, "dropped", "").Items...),
	}

	got := make([]string, 0, 1)
	for _, f := range released(s) {
		got = append(got, f.Object+": "+f.What)
	}

	want := []string{"Bucket of-dropped: Bucket a/of-dropped: spec.forProvider.size is changed from small to large once nobody holds it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	s.Composites, s.Former = of(xr, "runs", "NotRun").Items, nil
	if list := released(s); len(list) != 1 || !strings.Contains(list[0].Object, "of-runs") {
		t.Errorf("of a kind that another Composition still runs it for: %v", list)
	}
}

func TestXRsOfCompositionsWithoutTheFunctionAreRead(t *testing.T) {
	s := healthy(t)
	s.Lists[CRDs] = List{Items: append(s.Lists[CRDs].Items, read(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.org}
spec: {group: example.org, names: {kind: Database, plural: databases}, versions: [{name: v1, served: true, storage: true}]}`).Items...)}

	if list := Former(s); len(list) != 0 || len(Composites(s)) == 0 {
		t.Fatalf("composites %v, former %v", Composites(s), list)
	}

	runs := Composites(s)
	set(t, s, Compositions, "databases", []any{map[string]any{"step": "a"}}, "spec", "pipeline")

	if diff := cmp.Diff(runs, Former(s)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
