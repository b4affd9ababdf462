// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// readingParent is a policy about ReplicaSets that lets their controller do what it wants
// below a Deployment with a template, which the informers do not know.
const readingParent = `{metadata: {name: reading}, spec: {enforcementMode: MODE, match: {kind: ReplicaSet, fields: [spec], cel: ["has(parent.spec.template)"]},
	subjects: [{kind: User, name: "` + controller + `", mayInitiate: true}], allow: [{kind: Pod, mutations: [create]}]}}`

// TestWhatIsInShadowModeKeepsNothingFromBeingDecided has a policy that reads the parent,
// which the API server does not give.
func TestWhatIsInShadowModeKeepsNothingFromBeingDecided(t *testing.T) {
	for mode, want := range map[v1alpha1.EnforcementMode]bool{v1alpha1.EnforcementModeEnforce: false, v1alpha1.EnforcementModeShadow: true} {
		c := denying(t)
		c.broken = errBoom
		c.informed = []*unstructured.Unstructured{
			manifest(t, deployment), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"),
		}

		p := v1alpha1.AllowancePolicy{}
		if err := yaml.UnmarshalStrict([]byte(strings.Replace(readingParent, "MODE", string(mode), 1)), &p); err != nil {
			t.Fatal(err)
		}

		c.policies = append(c.policies, p)

		if rsp := through(t, c, scaled(t, replicaSet)); rsp.Allowed != want {
			t.Errorf("%s: allowed %t: %+v", mode, rsp.Allowed, rsp.Result)
		}

		if read := c.reads > 0; read == want {
			t.Errorf("%s: %d reads", mode, c.reads)
		}
	}
}

// TestWhatIsInShadowModeIsReportedByTheWholeParent where it would allow what nothing else does.
func TestWhatIsInShadowModeIsReportedByTheWholeParent(t *testing.T) {
	spent := strings.Replace(strings.Replace(deployment, "kausality.io/allowances", "other", 1), "{replicas: 2}", "{replicas: 2, template: {spec: {}}}", 1)

	c := denying(t)
	c.live = []*unstructured.Unstructured{manifest(t, spent)}
	c.informed = []*unstructured.Unstructured{manifest(t, spent), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}

	p := v1alpha1.AllowancePolicy{}
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(readingParent, "MODE", "Shadow", 1)), &p); err != nil {
		t.Fatal(err)
	}

	c.policies = append(c.policies, p)

	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), scaled(t, replicaSet))
	if got, want := rsp.AuditAnnotations["shadow"], `spec.replicas would be allowed by AllowancePolicy "reading"`; got != want {
		t.Errorf("shadow: %q, want %q", got, want)
	}
}
