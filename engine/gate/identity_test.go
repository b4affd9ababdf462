// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ofRed is the identity of a ConfigMap.
const ofRed = "{config: default, fields: {spec.forProvider.manifest.apiVersion: v1, spec.forProvider.manifest.kind: ConfigMap, " +
	"spec.forProvider.manifest.metadata.name: red, spec.forProvider.manifest.metadata.namespace: ''}}"

// moved is a managed resource whose gate was closed when it stood for the red ConfigMap, and that stands for a blue one, by an
// allowance for some actions.
func moved(t *testing.T, actions string) (u *unstructured.Unstructured, was v1alpha1.ExternalIdentity) {
	t.Helper()

	u = situation(t, map[string]string{
		"GATE":       strings.Replace(closed, "consumed: 3}", "consumed: 3, identity: "+ofRed+"}", 1),
		"ALLOWANCES": strings.Replace(update, "[Update]", actions, 1), "OBSERVED": "8",
	})
	resource.Map(u.Object, "spec", "forProvider")["manifest"] = map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "blue"},
	}

	rec, err := managed.ParseRecord(u)
	if err != nil {
		t.Fatal(err)
	}

	was = *rec.Identity

	return u, was
}

func TestAReplacementIsOpenedForAndRecordedAsSuch(t *testing.T) {
	u, was := moved(t, "[Create, Delete]")
	opts := gate.Options{LateInitialize: true, Settle: time.Minute}
	now := opening

	// 1. It opens to create the new one, and the old one stays behind.
	plan := planFor(t, u, opts, now)
	if diff := cmp.Diff(&was, plan.LeavesBehind); plan.Move != gate.OpenUp || !slices.Contains(plan.Policies, "Create") || slices.Contains(plan.Policies, "Update") || diff != "" {
		t.Fatalf("opening: %+v\n%s", plan, diff)
	}

	if diff := cmp.Diff(&was, plan.Record.Identity); diff != "" {
		t.Errorf("recorded before it is made: -want, +got:\n%s", diff)
	}

	// 2. Until that is made, the record names the old one.
	u = follow(t, u, plan)
	if plan := planFor(t, u, opts, now); plan.Move != gate.Stay {
		t.Fatalf("open: %+v", plan)
	}

	// 3. Then the new one, which is nobody else's.
	now = now.Add(2 * time.Minute)
	u = synced(t, u, u.GetGeneration())
	annotations := u.GetAnnotations()
	annotations[resource.AnnotationCreated] = now.Format(time.RFC3339)
	u.SetAnnotations(annotations)

	is := identity.Of(u, nil)
	plan = planFor(t, u, opts, now)

	if diff := cmp.Diff(&is, plan.Record.Identity); plan.Move != gate.CloseUp || plan.Record.Existed || diff != "" {
		t.Fatalf("closing: %+v\n%s", plan, diff)
	}

	// 4. And that is that.
	u = follow(t, u, plan)
	if plan := planFor(t, u, opts, now); plan.Move != gate.Stay || plan.LeavesBehind != nil {
		t.Errorf("closed: %+v", plan)
	}
}

func TestNoOtherAllowanceReachesAnotherExternalObject(t *testing.T) {
	for _, actions := range []string{"[Update]", "[Create]", "[Create, Update]", "[Update, Delete]"} {
		u, _ := moved(t, actions)

		plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening)
		if plan.Move != gate.Stay || plan.LeavesBehind != nil || !strings.Contains(plan.Why, "ConfigMap red (provider config default) would be orphaned") {
			t.Errorf("%s: %+v", actions, plan)
		}
	}
}

func TestAnInstallationSaysWhichFieldNamesAnotherExternalObject(t *testing.T) {
	const field = "spec.forProvider.clusterId"

	more, err := identity.ParseFields([]string{"Object.kubernetes.crossplane.io=" + field})
	if err != nil {
		t.Fatal(err)
	}

	u, _ := moved(t, "[Update]")
	resource.Map(u.Object, "spec", "forProvider", "manifest", "metadata")["name"] = "red"
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationGate] = strings.Replace(annotations[v1alpha1.AnnotationGate], "namespace: ''", "namespace: '', "+field+": a", 1)
	u.SetAnnotations(annotations)
	resource.Map(u.Object, "spec", "forProvider")["clusterId"] = "b"

	plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute, Identity: more}, opening)
	if plan.Move != gate.Stay || !strings.Contains(plan.Why, field+" names another external object") {
		t.Errorf("another cluster: %+v", plan)
	}

	resource.Map(u.Object, "spec", "forProvider")["clusterId"] = "a"

	if plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute, Identity: more}, opening); plan.Move != gate.OpenUp {
		t.Errorf("the same cluster: %+v", plan)
	}
}

func TestBeforeAnythingIsMadeNothingIsReplaced(t *testing.T) {
	u, _ := moved(t, "[Create, Update]")
	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationGate] = "{v: 1, state: Open, actions: [Create], creating: true, generation: 7, since: 2026-01-01T00:00:00Z, " +
		"identity: " + ofRed + "}"
	u.SetAnnotations(annotations)
	u.Object["status"] = map[string]any{}
	resource.Map(u.Object, "spec")["managementPolicies"] = []any{"Observe", "LateInitialize", "Create"}

	if managed.Stands(u) {
		t.Error("there is something to stand for")
	}

	plan := planFor(t, u, gate.Options{LateInitialize: true, Settle: time.Minute}, opening)
	if plan.LeavesBehind != nil || strings.Contains(plan.Why, "stay behind") {
		t.Errorf("plan: %+v", plan)
	}
}

func TestAProviderNamesWhatItMade(t *testing.T) {
	named := func(value string) string { return "{config: default, name: " + value + "}" }
	of := func(trace string) *unstructured.Unstructured {
		u := situation(t, map[string]string{"GATE": strings.Replace(closed, "consumed: 3}", "consumed: 3, identity: "+named("db")+"}", 1), "ALLOWANCES": del})
		u.SetAPIVersion("sql.example.org/v1")
		u.SetKind("Database")

		annotations := u.GetAnnotations()
		annotations[identity.AnnotationExternalName] = "main/db"
		annotations["kausality.io/trace"] = trace
		u.SetAnnotations(annotations)

		return u
	}
	opts := gate.Options{LateInitialize: true, Settle: time.Minute}

	if plan := planFor(t, of(""), opts, opening); plan.Move != gate.OpenUp || plan.Record.Identity.Name != "main/db" {
		t.Errorf("by its provider: %+v", plan)
	}

	const renamed = `[{field: "metadata.annotations[crossplane.io/external-name]", generation: 7, initiator: hans}]`
	if plan := planFor(t, of(renamed), opts, opening); plan.Move != gate.Stay || !strings.Contains(plan.Why, "another external object") {
		t.Errorf("by somebody: %+v", plan)
	}
}
