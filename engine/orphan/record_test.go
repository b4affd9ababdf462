// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestARecordHoldsWhatItTakesToObserveTheExternalObjectAgain(t *testing.T) {
	t.Parallel()

	u := object(t, `{}`)
	before := u.DeepCopy()
	now := time.Date(2026, 1, 5, 10, 0, 0, 5, time.UTC)
	r := orphan.NewRecord(u, now)

	data, err := r.Data()
	if err != nil {
		t.Fatal(err)
	}

	got, err := orphan.ReadRecord(data)
	if err != nil {
		t.Fatal(err)
	}

	want := orphan.Record{
		When: now.Truncate(time.Second), Observed: resource.Map(u.Object, "status", "atProvider"),
		Owner:  resource.Reference{APIVersion: "example.org/v1", Kind: "XDatabase", Namespace: "shop", Name: "xr-old", UID: "old-uid"},
		Object: object(t, `{metadata: null, status: null, spec: {managementPolicies: [Observe]}}`),
	}
	want.Object.Object = merge(want.Object.Object, document(t, `
metadata:
  name: db-1
  namespace: shop
  labels: {crossplane.io/composite: xr-old, crossplane.io/claim-name: old, crossplane.io/claim-namespace: shop, app: web}
  annotations: {crossplane.io/composition-resource-name: database, crossplane.io/external-name: prod-db}`))

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(before, u); diff != "" {
		t.Errorf("the managed resource was changed:\n%s", diff)
	}

	if string(data["external-name"]) != "prod-db" || string(data["provider-config"]) != "ClusterProviderConfig/aws" {
		t.Errorf("for people it says %q, %q", data["external-name"], data["provider-config"])
	}
}

func TestARecordKeepsANameThatIsTheDefault(t *testing.T) {
	t.Parallel()

	r := orphan.NewRecord(object(t, `metadata: {annotations: {crossplane.io/external-name: null}}`), time.Time{})
	if got := r.Object.GetAnnotations()["crossplane.io/external-name"]; got != "db-1" {
		t.Errorf("external name: %q", got)
	}
}

func TestEveryObjectThatEverWasHasARecordOfItsOwn(t *testing.T) {
	t.Parallel()

	one := orphan.NewRecord(object(t, `{}`), time.Time{})
	same := orphan.NewRecord(object(t, `status: null`), time.Time{})
	again := orphan.NewRecord(object(t, `metadata: {uid: other}`), time.Time{})
	other := orphan.NewRecord(object(t, `metadata: {name: db-2}`), time.Time{})

	if one.Name() != same.Name() || one.Name() == again.Name() || one.Key() != again.Key() || one.Key() == other.Key() {
		t.Errorf("names %s, %s, %s; keys %s, %s, %s", one.Name(), same.Name(), again.Name(), one.Key(), again.Key(), other.Key())
	}

	if len(one.Name()) > 63 || len(one.Key()) > 63 {
		t.Errorf("too long: %s, %s", one.Name(), one.Key())
	}
}

func TestARecordLeavesOutAStatusThatIsTooLarge(t *testing.T) {
	t.Parallel()

	u := object(t, `{}`)
	resource.Map(u.Object, "status", "atProvider")["blob"] = strings.Repeat("x", 300*1024)

	data, err := orphan.NewRecord(u, time.Time{}).Data()
	if err != nil {
		t.Fatal(err)
	}

	if _, ok := data["observed.yaml"]; ok || len(data["manifest.yaml"]) == 0 {
		t.Errorf("it holds %d bytes of status, and %d of the manifest", len(data["observed.yaml"]), len(data["manifest.yaml"]))
	}

	if _, err := orphan.ReadRecord(data); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoRecordIsAnError(t *testing.T) {
	t.Parallel()

	for name, data := range map[string]map[string][]byte{
		"Empty":      {},
		"NotYAML":    {"manifest.yaml": []byte("{")},
		"NotManaged": {"manifest.yaml": []byte("{kind: ConfigMap}"), "when": []byte("2026-01-01T00:00:00Z")},
		"NoTime":     {"manifest.yaml": []byte("{kind: A, spec: {forProvider: {}}}")},
	} {
		if r, err := orphan.ReadRecord(data); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}
