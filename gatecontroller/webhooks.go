// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Names of what the manager keeps in place.
const (
	configurationName = "kausality"
	writerGuardName   = "kausality-gate-writer"
	deleteGuardName   = "kausality-gate-delete"
)

// timeoutSeconds is how long the API server waits for the webhook.
const timeoutSeconds = 10

// applyWebhooks keeps the webhook configurations: governed objects to the
// mutating one, our own kinds to the validating one.
func (c *configuration) applyWebhooks(ctx context.Context, kinds []servedKind) error {
	if c.opts.Webhook == nil {
		return nil
	}

	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   typeMeta("MutatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks:   c.mutating(kinds),
	}

	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   typeMeta("ValidatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{c.validating()},
	}

	if err := c.apply(ctx, mutating); err != nil {
		return err
	}

	return c.apply(ctx, validating)
}

// mutating makes one webhook for kinds whose stamps must not be missed, which
// fails closed, and one for the others. Kinds that nobody enforces are only
// watched, and go on while the webhook is down.
func (c *configuration) mutating(kinds []servedKind) []admissionregistrationv1.MutatingWebhook {
	var closed, open []admissionregistrationv1.RuleWithOperations

	for _, k := range kinds {
		rule := ruleFor(k, admissionregistrationv1.Create, admissionregistrationv1.Update)
		if k.managed || k.crossplane {
			closed = append(closed, rule)
		} else {
			open = append(open, rule)
		}
	}

	var out []admissionregistrationv1.MutatingWebhook

	for _, w := range []struct {
		name   string
		policy admissionregistrationv1.FailurePolicyType
		rules  []admissionregistrationv1.RuleWithOperations
	}{
		{"governed." + v1alpha1.Group, admissionregistrationv1.Fail, closed},
		{"watched." + v1alpha1.Group, admissionregistrationv1.Ignore, open},
	} {
		if len(w.rules) == 0 {
			continue
		}

		out = append(out, admissionregistrationv1.MutatingWebhook{
			Name:                    w.name,
			ClientConfig:            c.clientConfig(c.opts.Webhook.MutatePath),
			Rules:                   w.rules,
			FailurePolicy:           new(w.policy),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector:       c.notOurNamespace(),
			ObjectSelector:          &metav1.LabelSelector{},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
			MatchConditions:         c.notUs(),
		})
	}

	return out
}

// validating is about our own kinds. It fails open: a policy that slips
// through while the webhook is down is reported in its status, and nobody is
// locked out of mending one.
func (c *configuration) validating() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "policies." + v1alpha1.Group,
		ClientConfig: c.clientConfig(c.opts.Webhook.ValidatePath),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{v1alpha1.Group}, APIVersions: []string{v1alpha1.Version},
				Resources: []string{"allowancepolicies", "upgradeallowances", "enforcements"}, Scope: ptr.To(admissionregistrationv1.AllScopes),
			},
		}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func ruleFor(k servedKind, ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{k.gvk.Group}, APIVersions: []string{"*"},
		Resources: []string{k.resource}, Scope: ptr.To(admissionregistrationv1.AllScopes),
	}}
}

func (c *configuration) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	w := c.opts.Webhook
	out := admissionregistrationv1.WebhookClientConfig{CABundle: w.Bundle()}

	if w.URL != "" {
		out.URL = new(w.URL + path)
	} else {
		out.Service = &admissionregistrationv1.ServiceReference{
			Namespace: c.opts.Namespace, Name: w.Service, Path: new(path), Port: ptr.To[int32](servicePort),
		}
	}

	return out
}

// servicePort is the port of the webhook's Service.
const servicePort = 443

// notOurNamespace leaves our own namespace alone, so that we can always start.
func (c *configuration) notOurNamespace() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{c.opts.Namespace},
	}}}
}

// notUs leaves out our own writes, and those of controllers that only clean
// up.
func (c *configuration) notUs() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name: "not-exempt",
		Expression: fmt.Sprintf("!(request.userInfo.username in [%q, %q, %q])", c.opts.ManagerUser,
			"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller"),
	}}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// apply makes an object as given, by server-side apply.
func (c *configuration) apply(ctx context.Context, obj client.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", obj.GetName(), err)
	}

	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")

	err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(ParentManager))
	if err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}
