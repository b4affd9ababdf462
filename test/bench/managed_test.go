// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"fmt"
	"testing"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

const (
	// kindManaged has gates, which our manager moves; kindFloor is the same for the bare controller.
	kindManaged = "Managed"
	kindFloor   = "Floor"
	// kindComposite is what owns managed resources.
	kindComposite = "Composite"
	// managedPerComposite is how many resources a composite has.
	managedPerComposite = 10
)

// managedCRD defines a kind of managed resources. Without the status subresource an object can be
// created as a provider left it.
func managedCRD(kind string, status bool) *extv1.CustomResourceDefinition {
	text, keep := extv1.JSONSchemaProps{Type: "string"}, true
	anything := extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}

	out := crd(kind)
	out.Spec.Names.Categories = []string{"crossplane", "managed"}
	v := &out.Spec.Versions[0]

	v.Schema.OpenAPIV3Schema.Properties["spec"] = extv1.JSONSchemaProps{Type: "object", Properties: map[string]extv1.JSONSchemaProps{
		"forProvider":    anything,
		"deletionPolicy": text,
		"managementPolicies": {
			Type: "array", Items: &extv1.JSONSchemaPropsOrArray{Schema: &text},
		},
	}}

	if !status {
		v.Subresources = nil
	}

	return out
}

// compositeCRD defines the kind of composites.
func compositeCRD() *extv1.CustomResourceDefinition {
	keep := true

	out := crd(kindComposite)
	out.Spec.Names.Categories = []string{"composite"}
	out.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}

	return out
}

// newComposite makes a composite that n managed resources belong to.
func newComposite(i, n int) *unstructured.Unstructured {
	u := newObject(kindComposite, fmt.Sprintf("composite-%d", i))
	u.SetFinalizers([]string{v1alpha1.Finalizer})
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationInitialized: `{"v":1}`})

	refs := make([]any, n)
	for j := range refs {
		refs[j] = map[string]any{
			"apiVersion": gvkOf(kindManaged).GroupVersion().String(), "kind": kindManaged,
			"name": nameOf(i*n + j),
		}
	}

	u.Object["spec"] = map[string]any{"size": int64(0), "crossplane": map[string]any{"resourceRefs": refs}}

	return u
}

// nameOf is the name of a managed resource.
func nameOf(i int) string { return fmt.Sprintf("managed-%d", i) }

// newManaged makes a managed resource of some 5 KiB, without what the API server adds: one whose gate
// has been closed after a change.
func newManaged(tb testing.TB, kind string, i int, owner *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()

	u := newObject(kind, nameOf(i))
	values, ok := u.Object["spec"].(map[string]any)

	if !ok {
		tb.Fatal("an object without a spec")
	}

	u.Object["spec"] = map[string]any{
		"managementPolicies": []any{"Observe", "LateInitialize"}, "deletionPolicy": "Delete", "forProvider": values,
	}
	u.Object["status"] = map[string]any{
		"atProvider": values, "conditions": conditionsOf(1),
	}

	gate, err := allowance.FormatGate(v1alpha1.GateRecord{
		State: v1alpha1.GateClosed, Generation: 1, Consumed: 1, Since: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
	})
	if err != nil {
		tb.Fatal(err)
	}

	u.SetLabels(map[string]string{"crossplane.io/composite": owner.GetName()})
	u.SetAnnotations(map[string]string{
		"crossplane.io/composition-resource-name": "resource",
		"crossplane.io/external-name":             u.GetName(),
		"crossplane.io/external-create-succeeded": "2026-01-01T00:00:00Z",
		v1alpha1.AnnotationDesiredPolicies:        `{"v":1,"policies":["*"]}`,
		v1alpha1.AnnotationGate:                   gate,
		v1alpha1.AnnotationAllowances:             allowance.None,
		v1alpha1.AnnotationTrace:                  allowance.FormatList([]v1alpha1.TraceEntry{traceOf(u, 1)}),
	})
	u.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})

	// Nothing governs the other kind: the manager would release what waits for it.
	if kind == kindManaged {
		u.SetFinalizers(append(u.GetFinalizers(), v1alpha1.Finalizer))
	}

	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}})

	return u
}

// conditionsOf are those of a resource whose provider has caught up with a generation.
func conditionsOf(generation int64) []any {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(typ, reason string) map[string]any {
		return map[string]any{
			"type": typ, "status": "True", "reason": reason, "lastTransitionTime": now, "observedGeneration": generation,
		}
	}

	return []any{condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")}
}

// traceOf says why a resource's size is what it is since a generation.
func traceOf(u *unstructured.Unstructured, generation int64) v1alpha1.TraceEntry {
	attested := map[string]string{"metadata.annotations[jira]": "INFRA-23232"}

	return v1alpha1.TraceEntry{Field: "spec.forProvider.size", Generation: generation, Initiator: initiator, Trace: []v1alpha1.Hop{
		{Kind: "Claim", Name: "claim", Generation: 12, Field: "spec.size", Attestations: attested},
		{Kind: kindComposite, Name: "composite", Generation: 13, Field: "spec.size"},
		{Kind: u.GetKind(), Name: u.GetName(), Generation: generation, Field: "spec.forProvider.size"},
	}}
}

// compositePolicy lets a change of a composite through to what it is made of.
func compositePolicy() *v1alpha1.AllowancePolicy {
	return &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "composite-to-managed"},
		Spec: v1alpha1.AllowancePolicySpec{
			Match:    v1alpha1.Match{APIGroup: group, Kind: kindComposite, Fields: []string{"spec.size"}},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
			Allow: []v1alpha1.Permission{
				{APIGroup: group, Kind: kindManaged, Relation: v1alpha1.RelationChild, Mutations: []string{"spec.forProvider.size"}},
				{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}},
			},
		},
	}
}
