// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/peer"
)

// configureKausality has us govern our kinds, and the owner allow what its children change.
func (f *fixture) configureKausality(tb testing.TB) {
	tb.Helper()

	// 1. Policies, and an Enforcement: both endpoints are asked.
	f.create(tb, ownerPolicy(), rootPolicy(), enforcement())
	f.inForce(tb, "AllowancePolicy", ownerPolicy().Name)
	f.inForce(tb, "AllowancePolicy", rootPolicy().Name)
	f.inForce(tb, "Enforcement", enforcement().Name)

	// 2. An owner that has been ready.
	f.owner = newObject(kindOwner, "owner")
	if err := f.hans.Create(tb.Context(), f.owner); err != nil {
		tb.Fatal(err)
	}

	f.owner.Object["status"] = map[string]any{"observedGeneration": f.owner.GetGeneration()}
	if err := f.admin.Status().Update(tb.Context(), f.owner); err != nil {
		tb.Fatal(err)
	}

	eventually(tb, "taking note that the owner was ready", func(ctx context.Context) error {
		return f.expectOnOwner(ctx, v1alpha1.AnnotationInitialized)
	})

	// 3. A change of it that nobody has observed yet, so that what it allows goes on.
	eventually(tb, "stamping a change of the owner", func(ctx context.Context) error {
		size := resource.Int(f.owner.Object, "spec", "size")
		if err := unstructured.SetNestedField(f.owner.Object, size+1, "spec", "size"); err != nil {
			return err
		}

		if err := f.hans.Update(ctx, f.owner); err != nil {
			return err
		}

		return f.expectOnOwner(ctx, v1alpha1.AnnotationAllowances)
	})
}

// expectOnOwner reads the owner, which is to have an annotation.
func (f *fixture) expectOnOwner(ctx context.Context, key string) error {
	if err := f.admin.Get(ctx, client.ObjectKeyFromObject(f.owner), f.owner); err != nil {
		return err
	}

	if resource.Annotation(f.owner, key) == "" {
		return fmt.Errorf("annotations are %v", f.owner.GetAnnotations())
	}

	return nil
}

func ownerPolicy() *v1alpha1.AllowancePolicy {
	return &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "owner-to-child"},
		Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{APIGroup: group, Kind: kindOwner, Fields: []string{"spec.size"}},
			Subjects: []v1alpha1.Subject{
				{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true},
				{Kind: v1alpha1.SubjectUser, Name: "anna@example.com"},
			},
			Allow: []v1alpha1.Permission{{
				APIGroup: group, Kind: kindOf(byKausality, child), Relation: v1alpha1.RelationChild,
				Mutations: []string{v1alpha1.MutationCreate, "spec.size"},
			}},
		},
	}
}

func rootPolicy() *v1alpha1.AllowancePolicy {
	return &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "root-to-child"},
		Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{
				APIGroup: group, Kind: kindOf(byKausality, root), Fields: []string{"spec.size"}, CEL: []string{expression},
			},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
			Allow: []v1alpha1.Permission{{
				APIGroup: group, Kind: kindOf(byKausality, child), Relation: v1alpha1.RelationChild,
				Mutations: []string{"spec.size"},
			}},
		},
	}
}

func enforcement() *v1alpha1.Enforcement {
	return &v1alpha1.Enforcement{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: v1alpha1.EnforcementSpec{
			Match: v1alpha1.EnforcementMatch{ResourceRules: []v1alpha1.ResourceRule{{
				APIGroups: []string{group}, Resources: resourcesOf(byKausality),
			}}},
			ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny},
			FailurePolicy:     v1alpha1.FailurePolicyFail,
		},
	}
}

// policyName names the ValidatingAdmissionPolicy and its binding.
const policyName = "bench"

// configurePolicy has the API server itself check its kinds.
func (f *fixture) configurePolicy(tb testing.TB) {
	tb.Helper()

	f.create(tb, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				{RuleWithOperations: about(byPolicy)},
			}},
			Validations: []admissionregistrationv1.Validation{{Expression: expression}},
		},
	}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policyName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
}

// about is the rule that names the kinds of an approach.
func about(a approach) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
		},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resourcesOf(a),
			Scope: ptr.To(admissionregistrationv1.AllScopes),
		},
	}
}

// peerName is the name of its configurations and webhooks for an approach.
func peerName(a approach) string { return string(a) + "." + group }

// configurePeer has the API server ask the webhook that allows everything about the kinds of an approach. It
// is configured as ours is: those webhooks are copied that are about our kinds.
func (f *fixture) configurePeer(tb testing.TB, a approach, mutatePath string) {
	tb.Helper()

	name := peerName(a)
	ours := func(rules []admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.Resources, resourcesOf(byKausality)[0])
		})
	}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(f.peer.URL + path), CABundle: f.peer.CA}
	}
	rules := []admissionregistrationv1.RuleWithOperations{about(a)}

	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}

	for _, o := range []client.Object{mutating, validating} {
		if err := f.admin.Get(tb.Context(), client.ObjectKey{Name: "kausality"}, o); err != nil {
			tb.Fatal(err)
		}
	}

	m := mutating.Webhooks[slices.IndexFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return ours(w.Rules)
	})]
	m.Name, m.ClientConfig, m.Rules = name, at(mutatePath), rules

	v := validating.Webhooks[slices.IndexFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return ours(w.Rules)
	})]
	v.Name, v.ClientConfig, v.Rules = name, at(peer.EnforcePath), rules

	f.create(tb, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{m},
	}, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{v},
	})
}
