// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

func scenarioOf(t *testing.T, name string) decision.Request {
	t.Helper()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	i := slices.IndexFunc(all, func(s corpus.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}

	req, problems := all[i].Decision()
	if len(problems) > 0 {
		t.Fatal(problems)
	}

	return req
}

// denyingAll is an Enforcement about all there is of the API group.
func denyingAll(t *testing.T, group string) []*enforcement.Enforcement {
	t.Helper()

	in := v1alpha1.Enforcement{}
	in.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{"*"}}}
	in.Spec.ValidationActions = []v1alpha1.ValidationAction{v1alpha1.ActionDeny}

	out, errs := enforcement.Compile(&in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	return []*enforcement.Enforcement{out}
}

// TestWhenSomethingWasStoredIsNoReasonToTryAgain for the API server asks twice, and
// the second time is a moment later.
func TestWhenSomethingWasStoredIsNoReasonToTryAgain(t *testing.T) {
	t.Parallel()

	req := scenarioOf(t, "own-external/alone")
	req.Resource = schema.GroupResource{Group: req.New.GroupVersionKind().Group, Resource: "rdsinstances"}
	req.Enforcements = denyingAll(t, req.Resource.Group)

	stored := decision.Decide(req).Object
	if resource.Annotation(stored, v1alpha1.AnnotationAsked) == "" {
		t.Fatal("nothing is remembered")
	}

	req.New, req.Now = stored, req.Now.Add(time.Second)
	if d := decision.Verify(req); d.Conflict != "" {
		t.Errorf("a second later: %s", d.Conflict)
	}

	forged := stored.DeepCopy()
	annotations := forged.GetAnnotations()
	annotations[v1alpha1.AnnotationAsked] = strings.Replace(annotations[v1alpha1.AnnotationAsked], "medium", "large", 1)
	forged.SetAnnotations(annotations)

	req.New = forged
	if d := decision.Verify(req); !strings.Contains(d.Conflict, v1alpha1.AnnotationAsked) {
		t.Errorf("another record is no conflict: %q", d.Conflict)
	}
}

func TestWhatARecordHasNoRoomForIsNoField(t *testing.T) {
	t.Parallel()

	for field, want := range map[string]string{
		"spec.size": "spec.size is 52 (last allowed: (unset))",
		"(more)":    "more fields, which the record has no room for",
	} {
		if got := decision.DescribeStored(v1alpha1.HeldChange{Field: field, To: "52"}); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

// TestSinceIsWhenItWasFirstStored and not when it was changed again.
func TestSinceIsWhenItWasFirstStored(t *testing.T) {
	t.Parallel()

	req := scenarioOf(t, "asked/stored-while-closed")
	first := decision.Decide(req).Object
	was := req.Now

	again := first.DeepCopy()
	resource.Map(again.Object, "spec", "forProvider")["engine"] = "oracle"

	req.Old, req.New, req.Now = first, again, req.Now.Add(time.Hour)
	req.User = policy.User{Name: "bob@example.com"}

	list, err := gate.InsideOf(decision.Decide(req).Object)
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}

	for _, in := range list {
		if !in.Since.Equal(was) {
			t.Errorf("%s is stored since %s, want %s", in.Change.Field, in.Since, was)
		}

		if in.Change.Field == "spec.forProvider.engine" && in.User != "bob@example.com" {
			t.Errorf("%s was stored by %s", in.Change.Field, in.User)
		}
	}
}
