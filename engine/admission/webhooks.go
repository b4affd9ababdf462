// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Seconds that the API server waits for the webhook: where it may go on without
// an answer it does so soon.
const (
	timeoutSeconds     = 10
	openTimeoutSeconds = 4
)

// Server is how the API server reaches the webhook.
type Server struct {
	// URL of the webhook's server, without a path; empty to use Service.
	URL string
	// Service in our namespace, and its port.
	Service string
	Port    int32
	// MutatePath, EnforcePath, ValidatePath, ApprovePath and UsagePath are the server's paths.
	MutatePath, EnforcePath, ValidatePath, ApprovePath, UsagePath string
	// CABundle is what the server is verified with, as PEM; none to trust what the
	// API server trusts anyway.
	CABundle []byte
	// InjectCAFrom is a Certificate of cert-manager, as NAMESPACE/NAME, whose CA
	// is trusted instead; empty for none.
	InjectCAFrom string
	// Manager is the manager that applies the configurations.
	Manager v1alpha1.ManagerRecord
}

// Options are what webhook configurations and guards are built by.
type Options struct {
	// Namespace we run in.
	Namespace string
	// Manager and crossplane are the names of their users.
	Manager, Crossplane string
	// Server of the webhook.
	Server Server
}

// GovernedKind is a kind that somebody is asked about.
type GovernedKind struct {
	Served kind.Served

	// deletes is true where deleting it matters.
	deletes bool
}

// Configurations builds the webhook configurations: what policies and Enforcements
// are about to be stamped, ChangeApprovals to be signed, what Enforcements are about
// to be refused, our kinds to be checked, what providers need to be kept, and
// newer conditions of XRs, too.
func (h Options) Configurations(
	governed []GovernedKind, enforced []Enforced, usages []kind.Served,
) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	meta, err := h.configurationMeta()
	if err != nil {
		return nil, nil, err
	}

	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   typeMeta("MutatingWebhookConfiguration"),
		ObjectMeta: meta,
		Webhooks:   slices.Concat(h.mutating(governed), h.reporting(governed), []admissionregistrationv1.MutatingWebhook{h.approving()}),
	}

	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   typeMeta("ValidatingWebhookConfiguration"),
		ObjectMeta: *meta.DeepCopy(),
		Webhooks: slices.Concat([]admissionregistrationv1.ValidatingWebhook{h.validating()},
			h.enforcing(enforced), h.keepingUsages(governed, usages)),
	}

	return mutating, validating, nil
}

// configurationMeta names a webhook configuration and who maintains it, and asks
// cert-manager to see to its CA where it shall.
func (h Options) configurationMeta() (metav1.ObjectMeta, error) {
	manager, err := yaml.Marshal(h.Server.Manager) //nolint:gosec // It has the name of a secret.
	if err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("cannot encode annotation %s: %w", v1alpha1.AnnotationManager, err)
	}

	annotations := map[string]string{v1alpha1.AnnotationManager: string(manager)}
	if from := h.Server.InjectCAFrom; from != "" {
		annotations["cert-manager.io/inject-ca-from"] = from
	}

	return metav1.ObjectMeta{Name: v1alpha1.NameWebhooks, Annotations: annotations}, nil
}

// mutating makes one webhook for Crossplane's kinds, whose stamps must not be
// missed, and one for the others. The latter go on while the webhook is down:
// where an Enforcement says otherwise, what was not stamped is refused by the
// webhook of that.
func (h Options) mutating(governed []GovernedKind) []admissionregistrationv1.MutatingWebhook {
	closed, open := rules{}, rules{}

	for _, s := range governed {
		into := open
		if s.Served.Gated() {
			into = closed
		}

		ops := []admissionregistrationv1.OperationType{opCreate, opUpdate}
		if s.deletes || s.Served.Gated() {
			ops = append(ops, opDelete)
		}

		into.addKind(s.Served, "", ops...)

		if s.Served.Scales {
			into.addKind(s.Served, "/scale", opUpdate)
		}
	}

	open.addNamespaces(governed)

	var out []admissionregistrationv1.MutatingWebhook

	for _, w := range []struct {
		name    string
		policy  admissionregistrationv1.FailurePolicyType
		timeout int32
		rules   rules
	}{
		{"governed." + v1alpha1.Group, admissionregistrationv1.Fail, timeoutSeconds, closed},
		{"watched." + v1alpha1.Group, admissionregistrationv1.Ignore, openTimeoutSeconds, open},
	} {
		if len(w.rules) == 0 {
			continue
		}

		out = append(out, admissionregistrationv1.MutatingWebhook{
			Name:                    w.name,
			ClientConfig:            h.clientConfig(h.Server.MutatePath),
			Rules:                   w.rules.list(),
			FailurePolicy:           new(w.policy),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector:       h.notOurNamespace(nil),
			ObjectSelector:          &metav1.LabelSelector{},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds:          new(w.timeout),
			AdmissionReviewVersions: []string{"v1"},
			ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
			MatchConditions: []admissionregistrationv1.MatchCondition{
				h.notBy("not-exempt", h.Manager, policy.GarbageCollector),
				{Name: "not-of-a-namespace", Expression: fmt.Sprintf(
					"request.operation == 'DELETE' || request.userInfo.username != %q", policy.NamespaceController)},
				h.notNoted(),
			},
		})
	}

	return out
}

// reporting is about the status of XRs, where Crossplane applies conditions that it read before it ran our function, and
// others are stored by now: see [resource.KeepRestated]. Where nobody answers it goes on.
func (h Options) reporting(governed []GovernedKind) []admissionregistrationv1.MutatingWebhook {
	const (
		conditions = "%s.?status.?conditions.orValue([])"
		applied    = "request.userInfo.username == %q && request.options.?fieldManager.orValue('') == %q"
		ours       = "%s.exists(o, o.type == %q)"
		others     = "%s.exists(o, %s.exists(c, c.type == o.type && c != o && (o.type in [%s] || c.status == o.status && " +
			"c.?reason.orValue('') == o.?reason.orValue('') && c.?message.orValue('') == o.?message.orValue('') && " +
			"c.?observedGeneration.orValue(0) <= o.?observedGeneration.orValue(0))))"
	)

	statuses := rules{}

	for _, s := range governed {
		if s.Served.Composite {
			statuses.add(s.Served.GVK.Group, s.Served.Resource+"/status", opUpdate)
		}
	}

	if len(statuses) == 0 {
		return nil
	}

	types := make([]string, 0, len(resource.Restated()))
	for _, typ := range resource.Restated() {
		types = append(types, strconv.Quote(typ))
	}

	was, is := fmt.Sprintf(conditions, "oldObject"), fmt.Sprintf(conditions, "object")

	return []admissionregistrationv1.MutatingWebhook{{
		Name:                    "statuses." + v1alpha1.Group,
		ClientConfig:            h.clientConfig(h.Server.MutatePath),
		Rules:                   statuses.list(),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       h.notOurNamespace(nil),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](openTimeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "applied-by-crossplane", Expression: fmt.Sprintf(applied, h.Crossplane, resource.CompositeManager)},
			{Name: "with-our-function", Expression: fmt.Sprintf(ours, was, v1alpha1.ConditionKausality)},
			{Name: "other-conditions", Expression: fmt.Sprintf(others, was, is, strings.Join(types, ", "))},
		},
	}}
}

// approving is about ChangeApprovals, which have to say who made them. It fails closed, for
// [Options.ApprovalGuard] refuses what it has not seen.
func (h Options) approving() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:         "approvals." + v1alpha1.Group,
		ClientConfig: h.clientConfig(h.Server.ApprovePath),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{opCreate},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{v1alpha1.Group}, APIVersions: []string{v1alpha1.Version},
				Resources: []string{changeApprovals}, Scope: ptr.To(admissionregistrationv1.AllScopes),
			},
		}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}
}

// enforcing makes one webhook for each Enforcement, of exactly what that says, and another one for requests to scale.
func (h Options) enforcing(list []Enforced) []admissionregistrationv1.ValidatingWebhook {
	var out []admissionregistrationv1.ValidatingWebhook

	for _, e := range list {
		objects, scales := rules{}, rules{}

		for _, k := range e.Kinds {
			ops := operationsOf(e.Enforcement.Operations(k.GroupResource()))
			objects.addKind(k, "", ops...)

			if k.Scales && slices.Contains(ops, opUpdate) {
				scales.addKind(k, "/scale", opUpdate)
			}
		}

		if len(objects) > 0 {
			out = append(out, h.enforce(e, "", objects))
		}

		// A request to scale carries no labels, and of the object little else.
		if len(scales) > 0 {
			w := h.enforce(e, "scale-", scales)
			w.ObjectSelector = &metav1.LabelSelector{}
			w.MatchConditions = w.MatchConditions[:1]
			out = append(out, w)
		}
	}

	return out
}

func (h Options) enforce(e Enforced, prefix string, r rules) admissionregistrationv1.ValidatingWebhook {
	objects, namespaces := e.Enforcement.Selectors()
	if objects == nil {
		objects = &metav1.LabelSelector{}
	}

	failure := admissionregistrationv1.Fail
	if e.Enforcement.Spec().FailurePolicy == v1alpha1.FailurePolicyIgnore {
		failure = admissionregistrationv1.Ignore
	}

	return admissionregistrationv1.ValidatingWebhook{
		Name:                    e.webhookName(prefix),
		ClientConfig:            h.clientConfig(h.Server.EnforcePath),
		Rules:                   r.list(),
		FailurePolicy:           new(failure),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       h.notOurNamespace(namespaces, metav1.NamespaceSystem),
		ObjectSelector:          objects,
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         append(h.exempt(), e.conditions()...),
	}
}

// validating is about our kinds. It fails open: a policy that slips
// through while the webhook is down is reported in its status, and nobody is
// locked out of correcting one.
func (h Options) validating() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "policies." + v1alpha1.Group,
		ClientConfig: h.clientConfig(h.Server.ValidatePath),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{v1alpha1.Group}, APIVersions: []string{v1alpha1.Version},
				Resources: []string{"allowancepolicies", "allowancebindings", "upgradeallowances", "enforcements"},
				Scope:     ptr.To(admissionregistrationv1.AllScopes),
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

func (h Options) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	w := h.Server
	out := admissionregistrationv1.WebhookClientConfig{}

	if w.InjectCAFrom == "" {
		out.CABundle = w.CABundle
	}

	if w.URL != "" {
		out.URL = new(w.URL + path)
	} else {
		out.Service = &admissionregistrationv1.ServiceReference{
			Namespace: h.Namespace, Name: w.Service, Path: new(path), Port: new(w.Port),
		}
	}

	return out
}

// notOurNamespace leaves our namespace alone, so that we can always start,
// and others.
func (h Options) notOurNamespace(given *metav1.LabelSelector, others ...string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	if given != nil {
		out = given.DeepCopy()
	}

	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: append([]string{h.Namespace}, others...),
	})

	return out
}

// exempt leaves out our writes, those of controllers that only clean up,
// and our CRDs, without which nothing of ours can be repaired.
func (h Options) exempt() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		h.notBy("not-exempt", h.Manager, policy.GarbageCollector, policy.NamespaceController),
		{Name: "not-our-crds", Expression: fmt.Sprintf(
			"request.resource.group != 'apiextensions.k8s.io' || !request.name.endsWith('.%s')", v1alpha1.Group)},
		h.notNoted(), changes(),
	}
}

// changes leaves out what changes nothing, as most of what Crossplane applies again and again: nobody waits for us then. What
// says of itself that something was held, edited or asked for otherwise is not left out: that may be over. The mutating webhooks
// are asked all the same: one that was not is not asked again after another one that changes something.
func changes() admissionregistrationv1.MatchCondition {
	const (
		same = "%[1]s.all(k, k in [%[3]s] || k in %[2]s && %[2]s[k] == %[1]s[k]) && %[2]s.all(k, k in [%[3]s] || k in %[1]s)"
		rest = "object.metadata.?annotations.orValue({}).all(k, !k.startsWith(%q) || k in [%s])"
		kept = "'managedFields', 'resourceVersion', 'generation'" // By the API server.
	)

	stays := strings.Join([]string{
		strconv.Quote(v1alpha1.AnnotationAllowances), strconv.Quote(v1alpha1.AnnotationTrace), strconv.Quote(v1alpha1.AnnotationInitialized),
		strconv.Quote(v1alpha1.AnnotationGate), strconv.Quote(v1alpha1.AnnotationDesiredPolicies),
		strconv.Quote(v1alpha1.AnnotationWish), strconv.Quote(v1alpha1.AnnotationRecord), strconv.Quote(v1alpha1.AnnotationLastUpgrade),
	}, ", ")

	return admissionregistrationv1.MatchCondition{
		Name: "changes-something",
		Expression: fmt.Sprintf("request.operation != 'UPDATE' || !(%s) || !(%s) || !(%s)",
			fmt.Sprintf(same, "object", "oldObject", "'metadata'"),
			fmt.Sprintf(same, "object.metadata", "oldObject.metadata", kept),
			fmt.Sprintf(rest, v1alpha1.AnnotationPrefix, stays)),
	}
}

func (Options) notBy(name string, users ...string) admissionregistrationv1.MatchCondition {
	quoted := make([]string, len(users))
	for i, u := range users {
		quoted[i] = strconv.Quote(u)
	}

	return admissionregistrationv1.MatchCondition{
		Name: name, Expression: fmt.Sprintf("!(request.userInfo.username in [%s])", strings.Join(quoted, ", ")),
	}
}

// notNoted leaves out what a provider notes on its managed resources, such
// as that it is about to create something, and has created it: if the latter
// cannot be stored, the provider does not continue until a person has checked.
func (h Options) notNoted() admissionregistrationv1.MatchCondition {
	const (
		same      = "object.?spec.?forProvider.hasValue() && object.spec == oldObject.spec"
		unchanged = "%[1]s.metadata.?annotations.orValue({}).all(k, !k.startsWith(%[3]q) || " +
			"%[2]s.metadata.?annotations[?k].orValue('') == %[1]s.metadata.annotations[k])"
	)

	return admissionregistrationv1.MatchCondition{
		Name: "not-noted-by-provider",
		Expression: fmt.Sprintf("request.operation != 'UPDATE' || !(%s) || !(%s) || !(%s) || !(%s)", h.byProvider(), same,
			fmt.Sprintf(unchanged, "object", "oldObject", v1alpha1.AnnotationPrefix),
			fmt.Sprintf(unchanged, "oldObject", "object", v1alpha1.AnnotationPrefix)),
	}
}

// byProvider is an expression that is true of requests of a provider: a service
// account of Crossplane's namespace that is not Crossplane's.
func (h Options) byProvider() string {
	crossplane, prefix := h.Crossplane, serviceaccount.ServiceAccountUsernamePrefix
	if namespace, _, err := serviceaccount.SplitUsername(crossplane); err == nil {
		prefix = serviceaccount.MakeUsername(namespace, "")
	}

	return fmt.Sprintf("request.userInfo.username.startsWith(%q) && request.userInfo.username != %q", prefix, crossplane)
}

func typeMeta(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: name}
}
