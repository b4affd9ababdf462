// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestWhileTheManagerIsAwayOnlyWhatIsGovernedWaits does not run beside others,
// for which the manager would be away too.
func TestWhileTheManagerIsAwayOnlyWhatIsGovernedWaits(t *testing.T) {
	closed, open, free := newLab(t, "lab-away-closed", "deny"), newLab(t, "lab-away-open", "open"), newLab(t, "lab-away-free", "none")
	tasks := map[string]*unstructured.Unstructured{
		"closed": closed.made(t, "task"), "open": open.made(t, "task"), "free": free.made(t, "task"),
	}
	as := controller(t, worker)
	ctx := t.Context()

	change := func(name string) error {
		return as.Patch(ctx, tasks[name].DeepCopy(), world.Merge(`{"spec": {"size": "huge"}}`))
	}

	for _, name := range []string{"closed", "open"} {
		if err := scenario.Eventually(ctx, "enforcement", func(context.Context) error {
			if err := change(name); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s: %w", name, errors.Join(err, world.ErrOther))
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	manager := running.Process("kausality-manager")
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}

	// 1. What fails closed does.
	if err := change("closed"); err == nil || apierrors.IsForbidden(err) || !mentions(err.Error(), "lab-deny.enforcement.kausality.io") {
		t.Errorf("failure policy Fail: %v", err)
	}

	// 2. Everything else goes on: what fails open, what is only watched, and
	// what nobody governs, our own kinds and namespace among it.
	for _, name := range []string{"open", "free"} {
		if err := change(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Of kinds that no other test has a policy about.
	meanwhile := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kausality.io/v1alpha1", "kind": "AllowancePolicy", "metadata": map[string]any{"name": "lab-made-meanwhile"},
		"spec": map[string]any{
			"match": map[string]any{"kind": "LimitRange", "apiGroup": "", "fields": []any{"spec.limits"}},
			"allow": []any{map[string]any{"kind": "ResourceQuota", "apiGroup": "", "mutations": []any{"spec.hard"}}},
		},
	}}

	t.Cleanup(func() { _ = closed.Delete(context.WithoutCancel(ctx), meanwhile) })

	for what, obj := range map[string]client.Object{
		"not governed": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "any-", Namespace: closed.namespace}},
		"our own":      &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "any-", Namespace: "kausality-system"}},
		"policy":       meanwhile,
	} {
		if err := closed.Create(ctx, obj); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// 3. Its return is enough.
	if err := manager.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	if err := change("closed"); !apierrors.IsForbidden(err) || !mentions(err.Error(), "spec.size") {
		t.Errorf("after its return: %v", err)
	}
}

// TestAnotherWebhookThatChangesObjectsAfterOursIsReckonedWith has one that the
// API server asks after ours, so that it asks ours again.
func TestAnotherWebhookThatChangesObjectsAfterOursIsReckonedWith(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-others", "deny")
	task := l.made(t, "task")
	serveOther(t, l.namespace)

	l.ask(t, "large")

	as := controller(t, worker)

	// 1. It changes what is allowed to something else that is allowed: the trace
	// is of what is stored.
	if err := scenario.Eventually(t.Context(), "the other webhook", func(ctx context.Context) error {
		if err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"metadata": {"labels": {"other": "allowed"}}, "spec": {"size": "large"}}`)); err != nil {
			return err
		}

		if got := l.size(t, task); got != "large-and-more" { //nolint:contextcheck // It is read under the test's.
			return fmt.Errorf("the size is %q: %w", got, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	live := task.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}

	if e, err := traceOf(live, "spec.size"); err != nil || e.Initiator != hansName {
		t.Errorf("trace: %+v, %v", e, err)
	}

	// 2. It adds what is not allowed: refused by what would be stored.
	err := as.Patch(t.Context(), task.DeepCopy(), world.Merge(`{"metadata": {"labels": {"other": "unasked"}}, "spec": {"size": "larger"}}`))
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), "spec.color") {
		t.Errorf("unasked: %v", err)
	}

	// 3. A person's change that is stamped before another webhook changes it is
	// no forgery.
	l.ask(t, "huge")

	plan := l.plan.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(plan), plan); err != nil || resource.String(plan.Object, "spec", "size") != "huge-and-more" {
		t.Errorf("plan: %v, %v", plan.Object["spec"], err)
	}
}

// serveOther runs a mutating webhook that changes what is labelled or annotated
// to be, in a namespace.
func serveOther(t *testing.T, namespace string) {
	t.Helper()

	h, err := admission.StandaloneWebhook(&admission.Webhook{Handler: admission.HandlerFunc(other)}, admission.StandaloneOptions{})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)

	cfg := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-other"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "other.lab.example.org",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{labGroup}, APIVersions: []string{"v1"}, Resources: []string{"tasks", "plans"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}

	c := newCluster(t, "Plan", "plan")
	if err := c.Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), cfg); err != nil {
			t.Error(err)
		}
	})
}

// other changes an object's size once, and for a label also its color.
func other(_ context.Context, req admission.Request) admission.Response {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, u); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}

	spec := resource.Map(u.Object, "spec")

	if size, ok := spec["size"].(string); ok && !strings.HasSuffix(size, "-and-more") {
		spec["size"] = size + "-and-more"
	}

	if u.GetLabels()["other"] == "unasked" {
		spec["color"] = "blue"
	}

	raw, err := json.Marshal(u)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}

	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

// TestCertificatesAreRotatedWithoutARefusedRequest makes requests all the time
// while the manager changes its certificate and CA, as it does in all of these
// tests every minute or two.
func TestCertificatesAreRotatedWithoutARefusedRequest(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-rotation", "deny")
	task := l.made(t, "task")
	as := controller(t, migration) // Excepted, and asked about all the same.

	bundles := map[string]bool{}
	requests := 0

	for end := time.Now().Add(patience.Limit); len(bundles) < 3 && time.Now().Before(end); requests++ {
		cfg := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := l.Get(t.Context(), client.ObjectKey{Name: "kausality"}, cfg); err != nil {
			t.Fatal(err)
		}

		bundles[string(cfg.Webhooks[0].ClientConfig.CABundle)] = true

		if err := as.Patch(t.Context(), task.DeepCopy(), world.Merge(fmt.Sprintf(`{"spec": {"size": "%d"}}`, requests))); err != nil {
			t.Fatalf("after %d requests and %d bundles: %v", requests, len(bundles), err)
		}

		time.Sleep(20 * time.Millisecond)
	}

	if len(bundles) < 3 {
		t.Errorf("%d bundles, want 3: with the first CA, with the next one beside it, and with that alone or another", len(bundles))
	}

	t.Logf("%d requests under %d bundles", requests, len(bundles))
}
