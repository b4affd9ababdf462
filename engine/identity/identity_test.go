// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

const (
	ofKubernetes = `{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, metadata: {name: o},
		spec: {providerConfigRef: {kind: ClusterProviderConfig, name: default}, forProvider: {manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}}}}`
	ofCloud = `{apiVersion: rds.aws.upbound.io/v1beta1, kind: Instance, metadata: {name: i, annotations: {crossplane.io/external-name: db-1}},
		spec: {forProvider: {region: eu-central-1, instanceClass: small}}}`
	ofSQL = `{apiVersion: postgresql.sql.crossplane.io/v1alpha1, kind: Grant, metadata: {name: g, annotations: {crossplane.io/external-name: g}},
		spec: {providerConfigRef: {name: main}, forProvider: {role: reader, database: shop, tables: [a, b], privileges: [SELECT]}}}`
)

func TestAChangeOfWhatIsOutsideIsKnownByItsFields(t *testing.T) {
	for name, tc := range map[string]struct {
		object, from, to string
		want             []string
	}{
		"Manifest's name":      {ofKubernetes, "name: web,", "name: api,", []string{"spec.forProvider.manifest.metadata.name"}},
		"Manifest's namespace": {ofKubernetes, ", namespace: shop", "", []string{"spec.forProvider.manifest.metadata.namespace"}},
		"Manifest's kind":      {ofKubernetes, "kind: Deployment", "kind: StatefulSet", []string{"spec.forProvider.manifest.kind"}},
		"Manifest's group":     {ofKubernetes, "apps/v1", "extensions/v1", []string{"spec.forProvider.manifest.apiVersion"}},
		"Manifest's version":   {ofKubernetes, "apps/v1", "apps/v1beta1", nil},
		"Config":               {ofKubernetes, "name: default", "name: other", []string{"spec.providerConfigRef"}},
		"Config's kind":        {ofKubernetes, "ClusterProviderConfig", "ProviderConfig", []string{"spec.providerConfigRef"}},
		"Default config":       {ofCloud, "spec: {", "spec: {providerConfigRef: {name: default}, ", nil},
		"First config":         {ofCloud, "spec: {", "spec: {providerConfigRef: {name: other}, ", []string{"spec.providerConfigRef"}},
		"Region":               {ofCloud, "eu-central-1", "us-east-1", []string{"spec.forProvider.region"}},
		"External name":        {ofCloud, "db-1", "db-2", []string{"metadata.annotations[crossplane.io/external-name]"}},
		"No external name":     {ofCloud, "crossplane.io/external-name: db-1", "", []string{"metadata.annotations[crossplane.io/external-name]"}},
		"Another field":        {ofCloud, "small", "large", nil},
		"Grant's role":         {ofSQL, "reader", "writer", []string{"spec.forProvider.role"}},
		"Grant's tables":       {ofSQL, "[a, b]", "[a, c]", []string{"spec.forProvider.tables"}},
		"Grant's privileges":   {ofSQL, "[SELECT]", "[SELECT, INSERT]", nil},
		"Grant's own name":     {ofSQL, "external-name: g", "external-name: h", nil},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := object(t, tc.object), object(t, strings.Replace(tc.object, tc.from, tc.to, 1))

			if diff := cmp.Diff(tc.want, identity.Differs(identity.Of(was, nil), identity.Of(is, nil))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			// As a change above it, and as what is left of it in a cache.
			for _, text := range append(tc.want, "spec") {
				path, err := fieldpath.Parse(text)
				if err != nil {
					t.Fatal(err)
				}

				of := strings.HasPrefix(strings.Join(tc.want, ""), text[:4])
				if got := identity.Changes(was, is, path, nil); got != (len(tc.want) > 0 && of) {
					t.Errorf("a change of %s: %v", text, got)
				}
			}

			trimmed := is.DeepCopy()
			resource.Map(trimmed.Object, "spec")["forProvider"] = map[string]any{}
			identity.Set(trimmed, identity.Of(is, nil))

			if diff := cmp.Diff(identity.Of(is, nil), identity.Of(trimmed, nil)); diff != "" {
				t.Errorf("trimmed: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsLearnedLaterIsNoChange(t *testing.T) {
	for name, tc := range map[string]struct{ object, later string }{
		"External name": {ofCloud, ", annotations: {crossplane.io/external-name: db-1}"},
		"Region":        {ofCloud, "region: eu-central-1, "},
		"Reference":     {ofSQL, "database: shop, "},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := object(t, strings.Replace(tc.object, tc.later, "", 1)), object(t, tc.object)

			if got := identity.Differs(identity.Of(was, nil), identity.Of(is, nil)); len(got) > 0 {
				t.Errorf("it differs in %v", got)
			}
		})
	}
}

func TestLongValuesAreHashed(t *testing.T) {
	u := object(t, strings.Replace(ofSQL, "[a, b]", "["+strings.Repeat("x", 300)+"]", 1))

	id := identity.Of(u, nil)
	if got := id.Fields["spec.forProvider.tables"]; !strings.HasPrefix(got, "sha256:") || len(got) > 80 {
		t.Errorf("it is recorded as %q", got)
	}

	trimmed := u.DeepCopy()
	resource.Map(trimmed.Object, "spec")["forProvider"] = map[string]any{}
	identity.Set(trimmed, id)

	if got := identity.Differs(id, identity.Of(trimmed, nil)); len(got) > 0 {
		t.Errorf("trimmed it differs in %v", got)
	}
}

func TestAnIdentityIsPutBack(t *testing.T) {
	for name, text := range map[string]string{"Kubernetes": ofKubernetes, "Cloud": ofCloud, "SQL": ofSQL} {
		t.Run(name, func(t *testing.T) {
			was := object(t, text)
			is := object(t, strings.NewReplacer("name: web, namespace: shop", "name: api", "eu-central-1", "us-east-1", "db-1", "db-2",
				"[a, b]", "[c]", "{name: main}", "{name: other}").Replace(text))
			identity.Set(is, identity.Of(was, nil))

			if got := identity.Differs(identity.Of(was, nil), identity.Of(is, nil)); len(got) > 0 {
				t.Errorf("it differs in %v", got)
			}
		})
	}
}

func TestAnExternalObjectIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		ofKubernetes: "Deployment shop/web (provider config ClusterProviderConfig/default)",
		ofCloud:      `external object "db-1", region "eu-central-1" (provider config default)`,
	} {
		u := object(t, text)
		if got := identity.Describe(u, identity.Of(u, nil)); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}

func TestANamespacedKindIsOfTheFamilyOfTheClusterScopedOne(t *testing.T) {
	for group, want := range map[string]string{
		"kubernetes.m.crossplane.io": "kubernetes.crossplane.io", "rds.aws.m.upbound.io": "rds.aws.upbound.io", "m.example.org": "m.example.org",
	} {
		if got := identity.Family(schema.GroupKind{Group: group, Kind: "K"}); got.Group != want || got.Kind != "K" {
			t.Errorf("%s is of %s", group, got)
		}
	}
}
