// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// lines are findings as RULE SEVERITY RESULT NAMESPACE OBJECT SINCE: MESSAGE.
func lines(list []audit.Finding) []string {
	out := make([]string, 0, len(list))

	for _, f := range list {
		since := ""
		if f.Since != nil {
			since = f.Since.Format(time.DateOnly)
		}

		out = append(out, fmt.Sprintf("%s %s %s %s %s %s: %s", f.Rule, f.Severity, f.Result, f.Namespace, f.Object, since, f.Message))
	}

	return out
}

// with adds a condition to an object.
func with(object, condition string) string {
	return strings.TrimSuffix(object, "}") + ", status: {conditions: [" + condition + "]}}"
}

func replace(text, what, by string) string { return strings.ReplaceAll(text, what, by) }

// ready is the condition of what is in force.
func ready(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "because", ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(noon().Add(-time.Hour)),
	}}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Generation: 1} }

// inForce is a policy about a kind.
func inForce(name, kind string) v1alpha1.AllowancePolicy {
	return v1alpha1.AllowancePolicy{
		ObjectMeta: named(name), Spec: v1alpha1.AllowancePolicySpec{Match: v1alpha1.Match{Kind: kind}},
		Status: v1alpha1.AllowancePolicyStatus{Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonInForce)},
	}
}

// allowing is a policy that allows changes of a kind.
func allowing(kind string) v1alpha1.AllowancePolicy {
	out := inForce("allowing", "Other")
	out.Spec.Allow = []v1alpha1.Permission{{Kind: kind, Mutations: []string{"data"}}}

	return out
}

func shadow(p v1alpha1.AllowancePolicy) v1alpha1.AllowancePolicy {
	p.Spec.EnforcementMode = v1alpha1.EnforcementModeShadow

	return p
}

// covering is an Enforcement of a resource.
func covering(group, resource string, action v1alpha1.ValidationAction) v1alpha1.Enforcement {
	return v1alpha1.Enforcement{
		ObjectMeta: named("all"),
		Spec: v1alpha1.EnforcementSpec{
			Match:             v1alpha1.EnforcementMatch{ResourceRules: []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}}},
			ValidationActions: []v1alpha1.ValidationAction{action},
		},
		Status: v1alpha1.EnforcementStatus{Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonInForce)},
	}
}

func TestWhatIsAskedForIsJudgedToo(t *testing.T) {
	t.Parallel()

	at := func(hours int) metav1.Time { return metav1.NewTime(noon().Add(time.Duration(hours) * time.Hour)) }
	window := func(from, until int, active bool) v1alpha1.UpgradeAllowance {
		return v1alpha1.UpgradeAllowance{
			ObjectMeta: named("upgrade"),
			Spec: v1alpha1.UpgradeAllowanceSpec{
				ServiceAccount: "system:serviceaccount:crossplane-system:crossplane", ValidFrom: at(from), ValidUntil: at(until),
				Allow: []v1alpha1.Permission{
					{Kind: "Instance", Mutations: []string{"spec.forProvider"}}, {Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}},
				},
			},
			Status: v1alpha1.UpgradeAllowanceStatus{Active: active, Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonInForce)},
		}
	}

	notReady, unseen, partly := inForce("p", "Database"), inForce("p", "Database"), inForce("p", "Database")
	notReady.Status.Conditions = ready(metav1.ConditionFalse, v1alpha1.ReasonKindUnknown)
	unseen.Generation = 2
	partly.Spec.Match.MatchConditions = []v1alpha1.PolicyCondition{
		{MatchCondition: v1alpha1.MatchCondition{Name: "hours"}, EnforcementMode: v1alpha1.EnforcementModeShadow}, {MatchCondition: v1alpha1.MatchCondition{Name: "size"}},
	}

	excepting := covering("apps", "*", v1alpha1.ActionDeny)
	excepting.Spec.Exceptions = []v1alpha1.Exception{
		{Name: "migration", Subjects: []v1alpha1.Subject{{Kind: "Group", Name: "dba"}}, Mutations: []string{"spec"}, Until: at(1), Reason: "INFRA-7"},
		{Name: "old", Subjects: []v1alpha1.Subject{{Kind: "Group", Name: "dba"}}, Mutations: []string{"spec"}, Until: at(0), Reason: "INFRA-1"},
	}

	cases := map[string]struct {
		reason string
		config audit.Config
		want   []string
	}{
		"NotReady": {
			reason: "A policy that is not in force is said, and why.", config: config(notReady),
			want: []string{"not-ready medium fail  AllowancePolicy p 2026-03-05: it is not in force: KindUnknown: because"},
		},
		"Unobserved": {
			reason: "So is one that the manager has not looked at, which may be a moment.", config: config(unseen),
			want: []string{"not-ready low warn  AllowancePolicy p : it is not in force: Unobserved: the manager has not looked at its present generation"},
		},
		"Binding": {
			reason: "A binding matters to its namespace.",
			config: audit.Config{Bindings: []v1alpha1.AllowanceBinding{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "b", Generation: 1},
				Status:     v1alpha1.AllowanceBindingStatus{Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonPolicyUnknown)},
			}}},
			want: []string{"not-ready medium fail team-a AllowanceBinding team-a/b 2026-03-05: it is not in force: PolicyUnknown: because"},
		},
		"ShadowCondition": {
			reason: "A condition in Shadow mode prevents nothing.", config: config(partly),
			want: []string{`shadow low warn  AllowancePolicy p : the enforcementMode of its condition "hours" is Shadow`},
		},
		"Exception": {
			reason: "An exception is said until it ends.", config: audit.Config{Admission: admission.Config{Enforcements: []v1alpha1.Enforcement{excepting}}},
			want: []string{"exception-open low warn  Enforcement all : exception migration: Group dba may change spec until 2026-03-05T13:00:00Z: INFRA-7"},
		},
		"Window": {
			reason: "A window is said while it is open.", config: audit.Config{Admission: admission.Config{Windows: []v1alpha1.UpgradeAllowance{window(-1, 1, true)}}},
			want: []string{"window-open low warn  UpgradeAllowance upgrade 2026-03-05: it is open for system:serviceaccount:crossplane-system:crossplane " +
				"until 2026-03-05T13:00:00Z: Instance spec.forProvider; Update"},
		},
		"WindowForLong": {
			reason: "One that is open for a week is no upgrade any more.",
			config: audit.Config{Admission: admission.Config{Windows: []v1alpha1.UpgradeAllowance{window(-200, 1, true)}}},
			want: []string{"window-open medium fail  UpgradeAllowance upgrade 2026-02-25: it is open for system:serviceaccount:crossplane-system:crossplane " +
				"until 2026-03-05T13:00:00Z: Instance spec.forProvider; Update"},
		},
		"WindowToCome": {
			reason: "One that has not begun is none.", config: audit.Config{Admission: admission.Config{Windows: []v1alpha1.UpgradeAllowance{window(1, 2, false)}}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := lines(audit.NewSweep(audit.Options{Now: noon()}, tc.config).Findings(audit.Found{}))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func config(list ...v1alpha1.AllowancePolicy) audit.Config {
	return audit.Config{Admission: admission.Config{Policies: list}}
}

// TestARecordOfWhatWasLeftOutsideIsFound and one that cannot be read as well.
func TestARecordOfWhatWasLeftOutsideIsFound(t *testing.T) {
	t.Parallel()

	u := fixture.Parse(t, managed(closedGate+", crossplane.io/external-name: prod-db", owner))

	data, err := orphan.NewRecord(u, noon()).Data()
	if err != nil {
		t.Fatal(err)
	}

	s := audit.NewSweep(audit.Options{Now: noon()}, audit.Config{})
	secret := audit.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "kausality-system", Name: "record"}
	s.Record(secret, data)
	s.Record(secret, nil)
	s.Unread("instances.rds.example.org", "team-a", "forbidden")

	got := lines(s.Findings(audit.Found{}))
	want := []string{
		"left-outside medium fail  Secret kausality-system/record 2026-03-05: it is the record of an external object whose managed resource is gone: " +
			"Instance db-1, external name prod-db",
		"left-outside medium fail  Secret kausality-system/record : it is the record of an external object whose managed resource is gone: " +
			"cannot read a record: it holds no managed resource",
		"unread info error team-a instances.rds.example.org : cannot look at instances.rds.example.org: forbidden",
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhatIsLeftOutIsCounted where an object has more than a finding names.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	t.Parallel()

	changes := []string{"a", "b", "c", "d", "e", "f", "g"}
	for i, field := range changes {
		changes[i] = "{field: spec." + field + ", from: '1', cause: {type: Edit, user: anna, since: 2026-03-04T00:00:00Z}, stored: {}}"
	}

	got := audit.Edited(fixture.Parse(t, "{apiVersion: v1, kind: X, metadata: {name: x, annotations: {kausality.io/held: \"["+strings.Join(changes, ", ")+"]\"}}}"))
	if len(got) != 1 || !strings.HasSuffix(got[0].Message, "spec.e was saved by anna at 2026-03-04T00:00:00Z, and was 1; and 2 more") {
		t.Errorf("got %v", got)
	}
}

// TestAFindingKeepsItsKey whatever its message says.
func TestAFindingKeepsItsKey(t *testing.T) {
	t.Parallel()

	a := audit.Finding{Rule: audit.Held, Object: audit.Ref{Kind: "X", Name: "x", UID: "1"}, Message: "one"}
	b, other, part := a, a, a
	b.Message, other.Object.UID, part.Part = "two", "2", "p"

	if a.Key() != b.Key() || a.Key() == other.Key() || a.Key() == part.Key() {
		t.Errorf("keys %q, %q, %q, %q", a.Key(), b.Key(), other.Key(), part.Key())
	}
}
