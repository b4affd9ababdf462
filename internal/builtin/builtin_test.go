// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kausality-io/kausality-crossplane/internal/builtin"
)

// TestTheSchemasOfKubernetesHaveTheFieldsThatItPublishes compares them with those for
// server-side apply, which are generated from what the API server publishes.
func TestTheSchemasOfKubernetesHaveTheFieldsThatItPublishes(t *testing.T) {
	t.Parallel()

	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	fields := 0

	for _, k := range builtin.Kinds() {
		object, err := scheme.Scheme.New(k.GVK)
		if err != nil {
			t.Fatal(err)
		}

		object.GetObjectKind().SetGroupVersionKind(k.GVK)

		typed, err := converter.ObjectToTyped(object)
		if err != nil {
			t.Errorf("%s: %v", k.GVK, err)

			continue
		}

		fields += compare(t, k.GVK.Kind, builtin.Schema(k.GVK), typed.Schema(), typed.TypeRef())
	}

	if fields < 5000 {
		t.Errorf("%d fields compared, want many more", fields)
	}
}

// compare compares what is at a path, and counts the fields.
func compare(t *testing.T, path string, got *spec.Schema, in *smdschema.Schema, ref smdschema.TypeRef) int {
	t.Helper()

	want, ok := in.Resolve(ref)
	if !ok {
		t.Fatalf("%s: not published", path)
	}

	switch {
	case want.List != nil && want.Map != nil: // It may be anything.
	case want.List != nil:
		if got.Items == nil {
			t.Errorf("%s: %v, want a list", path, got.Type)

			return 0
		}

		return compare(t, path+"[*]", got.Items.Schema, in, want.List.ElementType)
	case want.Map != nil && len(want.Fields) > 0:
		var names []string
		for _, f := range want.Fields {
			names = append(names, f.Name)
		}

		slices.Sort(names)

		if diff := cmp.Diff(names, slices.Sorted(maps.Keys(got.Properties))); diff != "" {
			t.Errorf("%s: -published, +got:\n%s", path, diff)

			return 0
		}

		out := len(names)

		for _, f := range want.Fields {
			child := got.Properties[f.Name]
			out += compare(t, path+"."+f.Name, &child, in, f.Type)
		}

		return out
	case want.Scalar != nil && *want.Scalar == smdschema.String && !got.Type.Contains("string"),
		want.Scalar != nil && *want.Scalar == smdschema.Boolean && !got.Type.Contains("boolean"),
		want.Scalar != nil && *want.Scalar == smdschema.Numeric && !got.Type.Contains("integer") && !got.Type.Contains("number"):
		t.Errorf("%s: %v, want %s", path, got.Type, *want.Scalar)
	}

	return 0
}

func TestEachKindOfKubernetesIsInItsPreferredVersion(t *testing.T) {
	t.Parallel()

	got := map[string]string{}
	for _, k := range builtin.Kinds() {
		got[k.GroupResource().String()] = k.GVK.GroupVersion().String() + " " + k.GVK.Kind
	}

	for resource, want := range map[string]string{
		"deployments.apps": "apps/v1 Deployment", "configmaps": "v1 ConfigMap", "ingresses.networking.k8s.io": "networking.k8s.io/v1 Ingress",
		"horizontalpodautoscalers.autoscaling": "autoscaling/v2 HorizontalPodAutoscaler", "networkpolicies.networking.k8s.io": "networking.k8s.io/v1 NetworkPolicy",
		"endpoints": "v1 Endpoints", "storageclasses.storage.k8s.io": "storage.k8s.io/v1 StorageClass",
		// Nobody governs these, and these are none.
		"nodes": "", "leases.coordination.k8s.io": "", "scales.autoscaling": "", "podlists": "", "listoptions": "",
	} {
		if got[resource] != want {
			t.Errorf("%s: %q, want %q", resource, got[resource], want)
		}
	}
}

func TestOfOtherKindsThereIsNoSchema(t *testing.T) {
	t.Parallel()

	for _, gvk := range []schema.GroupVersionKind{
		{Group: "example.org", Version: "v1", Kind: "Database"}, {Group: "apps", Version: "v1", Kind: "DeploymentList"}, {Version: "v1", Kind: "Binding"},
	} {
		if builtin.Schema(gvk) != nil {
			t.Errorf("%s has a schema", gvk)
		}
	}
}
