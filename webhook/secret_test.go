// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestTheWebhookShowsNoCredential puts objects with credentials to both
// endpoints under each action, and searches for them in all that is said beside the
// objects: answers, audit annotations, events and logs.
func TestTheWebhookShowsNoCredential(t *testing.T) {
	all, err := corpus.Planting()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range all {
		if s.Request == nil {
			continue
		}

		for _, action := range []v1alpha1.ValidationAction{"", "Deny", "Hold", "Warn", "Audit"} {
			t.Run(s.Name+"/"+string(action), func(t *testing.T) {
				for _, text := range overheard(t, s, action) {
					if corpus.Leaks(text) {
						t.Errorf("it tells a credential: %s", text)
					}
				}
			})
		}
	}
}

// overheard is all that the webhook says of a scenario under an action.
func overheard(t *testing.T, s corpus.Scenario, action v1alpha1.ValidationAction) []string {
	t.Helper()

	if action != "" {
		s.Enforcements = []v1alpha1.Enforcement{everything(action)}
		s.Request.Resource = "things"
	}

	req, _ := s.Decision()
	c := &cluster{policies: s.Policies, upgrades: s.Upgrades, enforcements: s.Enforcements}

	for _, u := range []*unstructured.Unstructured{s.Parent, s.Namespace} {
		if u != nil {
			c.live, c.informed = append(c.live, u), append(c.informed, u)
		}
	}

	var said []string

	recorder := events.NewFakeRecorder(1000)
	judge := c.judge(t, req.Basis.Now)
	judge.Events = recorder
	judge.Log = funcr.New(func(prefix, args string) { said = append(said, prefix+args) }, funcr.Options{Verbosity: 10})

	review := reviewOf(t, req)

	first := post(t, serve(t, &webhook.Mutator{Judge: judge}), review)
	said = append(said, answered(t, first)...)

	review.Object.Raw = patched(t, review.Object.Raw, first.Patch)
	said = append(said, answered(t, post(t, serve(t, &webhook.Enforcer{Judge: judge}), review))...)

	stored := &unstructured.Unstructured{}
	if err := json.Unmarshal(review.Object.Raw, &stored.Object); err != nil {
		t.Fatal(err)
	}

	said = append(said, corpus.Ours(stored))

	for len(recorder.Events) > 0 {
		said = append(said, <-recorder.Events)
	}

	return slices.Concat(said, c.patches)
}

// answered is what an answer says beside its patch.
func answered(t *testing.T, r *admissionv1.AdmissionResponse) []string {
	t.Helper()

	without := r.DeepCopy()
	without.Patch = nil

	raw, err := json.Marshal(without)
	if err != nil {
		t.Fatal(err)
	}

	return []string{string(raw)}
}

// everything is an Enforcement of whatever there is.
func everything(action v1alpha1.ValidationAction) v1alpha1.Enforcement {
	e := v1alpha1.Enforcement{}
	e.Name = "everything"
	e.Spec.ValidationActions = []v1alpha1.ValidationAction{action}
	e.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}

	return e
}
