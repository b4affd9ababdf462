// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// enforcing is a cluster with Enforcements, of which nothing can be read.
func enforcing(tb testing.TB, enforcements ...string) *cluster {
	tb.Helper()

	c := &cluster{broken: errBoom}

	for _, text := range enforcements {
		e := v1alpha1.Enforcement{}
		if err := yaml.UnmarshalStrict([]byte(text), &e); err != nil {
			tb.Fatal(err)
		}

		c.enforcements = append(c.enforcements, e)
	}

	return c
}

// of is an Enforcement of everything.
func of(rest string) string {
	return `{metadata: {name: e}, spec: {match: {resourceRules: [{apiGroups: ["*"], resources: ["*"]}]}, ` + rest + `}}`
}

func TestWhatCannotBeDecidedIsRefusedOnlyWhereAnEnforcementInsists(t *testing.T) {
	const selecting = `{metadata: {name: e}, spec: {validationActions: [Deny], match: {
		resourceRules: [{apiGroups: [apps], resources: [replicasets, deployments]}], namespaceSelector: {matchLabels: {env: prod}}}}}`

	cases := map[string]struct {
		reason      string
		enforcement []string
		namespace   string
		refused     bool
	}{
		"None":       {reason: "Nothing is enforced."},
		"Audit":      {reason: "It only tells.", enforcement: []string{of("validationActions: [Audit]")}},
		"Warn":       {reason: "It only tells.", enforcement: []string{of("validationActions: [Warn, Audit], failurePolicy: Fail")}},
		"Ignore":     {reason: "It fails open.", enforcement: []string{of("validationActions: [Deny], failurePolicy: Ignore")}},
		"IgnoreHold": {reason: "It fails open.", enforcement: []string{of("validationActions: [Hold], failurePolicy: Ignore")}},
		"Deny":       {reason: "It fails closed.", enforcement: []string{of("validationActions: [Deny]")}, refused: true},
		"Hold":       {reason: "It fails closed.", enforcement: []string{of("validationActions: [Hold], failurePolicy: Fail")}, refused: true},
		"Condition": {
			reason: "It fails closed, and so does a condition that cannot be evaluated.", refused: true,
			enforcement: []string{of(`validationActions: [Deny], matchConditions: [{name: c, expression: "object.spec.none == 1"}]`)},
		},
		"Other": {
			reason:      "It is about something else.",
			enforcement: []string{`{metadata: {name: e}, spec: {match: {resourceRules: [{apiGroups: [batch], resources: ["*"]}]}, validationActions: [Deny]}}`},
		},
		"Namespace":        {reason: "It is about other namespaces.", enforcement: []string{selecting}, namespace: "{env: dev}"},
		"NamespaceOfIt":    {reason: "It is about this one.", enforcement: []string{selecting}, namespace: "{env: prod}", refused: true},
		"NamespaceUnknown": {reason: "It may be about this one, whose labels cannot be read.", enforcement: []string{selecting}, refused: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := enforcing(t, tc.enforcement...)

			if ns := tc.namespace; ns != "" || !strings.HasPrefix(name, "Namespace") {
				c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: "+orNone(ns)+"}}"))
			}

			judge := c.judge(t, time.Now())
			scaler := webhook.NewScaler(c.mapper())

			for what, req := range map[string]*admissionv1.AdmissionRequest{
				"update": twoReplicas(t), "delete": deleting(t, manifest(t, replicaSet), "anna"), "scale": toScale(t),
			} {
				for endpoint, handler := range map[string]admission.Handler{
					"mutate": &webhook.Mutator{Judge: judge, Scaler: scaler}, "enforce": &webhook.Enforcer{Judge: judge, Scaler: scaler},
				} {
					rsp := post(t, serve(t, handler), req)
					if rsp.Allowed == tc.refused {
						t.Errorf("%s\n%s, %s: allowed %t: %v", tc.reason, endpoint, what, rsp.Allowed, rsp.Result)
					}

					if len(rsp.Patch) > 0 {
						t.Errorf("%s\n%s, %s: changed: %s", tc.reason, endpoint, what, rsp.Patch)
					}

					if !tc.refused && len(rsp.Warnings) != 1 || tc.refused && !strings.Contains(rsp.Result.Message, "Enforcement e") {
						t.Errorf("%s\n%s, %s: nobody is told: %v, %v", tc.reason, endpoint, what, rsp.Warnings, rsp.Result)
					}
				}
			}
		})
	}
}

func TestWithoutWhatIsInForceWhatWasInForceLastSaysWhatIsRefused(t *testing.T) {
	cases := map[string]struct {
		reason, enforcement string
		known, refused      bool
	}{
		"Deny":    {reason: "It fails closed.", enforcement: of("validationActions: [Deny]"), known: true, refused: true},
		"Audit":   {reason: "It only tells.", enforcement: of("validationActions: [Audit]"), known: true},
		"Ignore":  {reason: "It fails open.", enforcement: of("validationActions: [Deny], failurePolicy: Ignore"), known: true},
		"Unknown": {reason: "Nothing was ever read.", enforcement: of("validationActions: [Audit]"), refused: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := enforcing(t, tc.enforcement)
			c.broken = nil
			c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
			judge := c.judge(t, time.Now())
			scaler := webhook.NewScaler(c.mapper())

			if tc.known {
				post(t, serve(t, &webhook.Mutator{Judge: judge, Scaler: scaler}), twoReplicas(t))
			}

			c.unlisted = errBoom
			judge.Inputs.Inputs.Changed()

			for endpoint, handler := range map[string]admission.Handler{
				"mutate": &webhook.Mutator{Judge: judge, Scaler: scaler}, "enforce": &webhook.Enforcer{Judge: judge, Scaler: scaler},
			} {
				for what, req := range map[string]*admissionv1.AdmissionRequest{"update": twoReplicas(t), "scale": toScale(t)} {
					rsp := post(t, serve(t, handler), req)
					if rsp.Allowed == tc.refused {
						t.Errorf("%s\n%s, %s: allowed %t: %v", tc.reason, endpoint, what, rsp.Allowed, rsp.Result)
					}

					if !tc.refused && (len(rsp.Warnings) != 1 || len(rsp.Patch) > 0) {
						t.Errorf("%s\n%s, %s: warned of %v, changed %s", tc.reason, endpoint, what, rsp.Warnings, rsp.Patch)
					}
				}
			}
		})
	}
}

// twoReplicas asks for one more replica.
func twoReplicas(tb testing.TB) *admissionv1.AdmissionRequest {
	tb.Helper()

	return update(tb, manifest(tb, replicaSet), manifest(tb, strings.Replace(replicaSet, "replicas: 1", "replicas: 2", 1)), controller)
}

func orNone(labels string) string {
	if labels == "" {
		return "{}"
	}

	return labels
}

// toScale is a request to scale.
func toScale(tb testing.TB) *admissionv1.AdmissionRequest {
	tb.Helper()

	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Update, SubResource: "scale",
		Kind:     metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Name:     "web", Namespace: "shop",
		Object: runtime.RawExtension{Raw: []byte(`{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3}}`)},
	}
}

// panicking panics over each object.
type panicking struct{ client.Reader }

func (panicking) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("boom")
}

func TestAPanicIsAnsweredAsAnyError(t *testing.T) {
	for action, refused := range map[string]bool{"Audit": false, "Deny": true} {
		c := enforcing(t, of("validationActions: ["+action+"]"))
		c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
		judge := c.judge(t, time.Now())
		judge.Objects = cached.NewObjects(c, panicking{}, c.mapper(), nil)

		for endpoint, handler := range map[string]admission.Handler{"mutate": &webhook.Mutator{Judge: judge}, "enforce": &webhook.Enforcer{Judge: judge}} {
			if rsp := post(t, serve(t, handler), twoReplicas(t)); rsp.Allowed == refused {
				t.Errorf("%s, %s: allowed %t: %v", action, endpoint, rsp.Allowed, rsp.Result)
			}
		}
	}
}

func TestADeletionThatCannotBeWrittenDownGoesOnWhereNothingIsEnforced(t *testing.T) {
	for name, tc := range map[string]struct {
		enforcements []string
		refused      bool
	}{
		"None": {}, "Audit": {enforcements: []string{of("validationActions: [Audit]")}},
		"Deny": {enforcements: []string{of("validationActions: [Deny]")}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := deletable(t)
			c.enforcements = enforcing(t, tc.enforcements...).enforcements
			c.live = append(c.live, manifest(t, liveClaim))

			judge := c.judge(t, time.Now())
			judge.Writer = unwritable{c}

			rsp := post(t, serve(t, &webhook.Mutator{Judge: judge}), deleting(t, manifest(t, liveClaim), "hans", "platform-team"))
			if rsp.Allowed == tc.refused || !tc.refused && len(rsp.Warnings) == 0 {
				t.Errorf("allowed %t: %v, %v", rsp.Allowed, rsp.Result, rsp.Warnings)
			}
		})
	}
}

// unwritable refuses each write.
type unwritable struct{ webhook.Writer }

func (unwritable) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errBoom
}

func TestWhatIsHeldWithoutAnEnforcementIsNotStoredUndecided(t *testing.T) {
	const xr = `{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: x, uid: x, generation: 2}, spec: {size: 1, resourceRefs: [],
		claimRef: {apiVersion: example.org/v1, kind: Database, namespace: shop, name: c}}}`

	obj := manifest(t, xr)
	if err := unstructured.SetNestedField(obj.Object, int64(2), "spec", "size"); err != nil {
		t.Fatal(err)
	}

	judge := enforcing(t).judge(t, time.Now())
	if rsp := post(t, serve(t, &webhook.Mutator{Judge: judge}), update(t, manifest(t, xr), obj, "anna")); rsp.Allowed {
		t.Errorf("stored: %v", rsp)
	}
}
