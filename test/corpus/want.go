// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Who is who in the corpus.
const (
	// Crossplane works under this user name.
	Crossplane = "system:serviceaccount:crossplane-system:crossplane"
	// Manager is the user name of Kausality's manager.
	Manager = "system:serviceaccount:kausality-system:kausality-manager"
)

// Want is what want.yaml says of a decision.
type Want struct {
	// Action taken on unallowed changes.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Denied says why the request is refused.
	Denied string `json:"denied,omitempty"`
	// Enforcements that govern the object.
	Enforcements []string `json:"enforcements,omitempty"`
	// Findings on each change.
	Findings []Finding `json:"findings,omitempty"`
	// Forged annotations.
	Forged []string `json:"forged,omitempty"`
	// Held changes.
	Held []v1alpha1.HeldChange `json:"held,omitempty"`
	// Problems with the input.
	Problems []string `json:"problems,omitempty"`
	// Shadow says what would be decided otherwise without Shadow mode.
	Shadow []string `json:"shadow,omitempty"`
	// Warnings for the user.
	Warnings []string `json:"warnings,omitempty"`
}

// Finding is what is decided about one change.
type Finding struct {
	Field     string           `json:"field"`
	Verdict   decision.Verdict `json:"verdict"`
	Rule      decision.Rule    `json:"rule,omitempty"`
	Policy    string           `json:"policy,omitempty"`
	Initiator string           `json:"initiator,omitempty"`
	Lacks     []Lack           `json:"lacks,omitempty"`
}

// Lack is one thing that prevents a change from being allowed.
type Lack struct {
	Policy string          `json:"policy,omitempty"`
	What   policy.LackKind `json:"what"`
	Text   string          `json:"text"`
}

// Plan is what want.yaml says of a gate.
type Plan struct {
	// Move to make.
	Move gate.Move `json:"move"`
	// Policies that spec.managementPolicies gets or keeps.
	Policies []string `json:"policies"`
	// Spec that is put back, as a merge patch.
	Spec map[string]any `json:"spec,omitempty"`
	// ExternalName that is put back.
	ExternalName *string `json:"externalName,omitempty"`
	// Record that is written; none where nothing is.
	Record *v1alpha1.GateRecord `json:"record,omitempty"`
	// Left are the allowances that stay.
	Left []v1alpha1.Allowance `json:"left,omitempty"`
	// Why, for a person.
	Why string `json:"why,omitempty"`
	// Overdue is true where the gate was open for too long.
	Overdue bool `json:"overdue,omitempty"`
	// Ungated is true where the provider supports no gate.
	Ungated bool `json:"ungated,omitempty"`
	// Again is when to check again.
	Again string `json:"again,omitempty"`
	// Broken says why it cannot be known whether the change has landed.
	Broken string `json:"broken,omitempty"`
	// Problem with the annotations.
	Problem string `json:"problem,omitempty"`
}

// Decision makes the request for the engine. Policies, windows and
// Enforcements that do not compile are left out and returned as errors.
func (s *Scenario) Decision() (decision.Request, []error) {
	set := inforce.NewCache().Set(inforce.Objects{
		Policies: s.Policies, Bindings: s.Bindings, Windows: s.Upgrades, Enforcements: s.Enforcements,
	})

	req := decision.Request{
		Basis:     set.Basis(decision.Settings{Crossplane: Crossplane, Manager: Manager}, moment(s.Request.Now)),
		Operation: decision.Operation(s.Request.Operation),
		Old:       s.Old, New: s.New, Parent: s.Parent, Namespace: s.Namespace,
		User:       s.user(),
		Orphans:    s.Request.Orphans,
		ParentGone: s.Request.ParentGone, ParentSettles: s.Request.ParentSettles,
		Resource: schema.GroupResource{Group: s.group(), Resource: s.Request.Resource},
		Versions: s.Request.Versions,
		Action:   s.Request.Action,
		DryRun:   s.Request.DryRun, Options: s.Request.Options,
	}

	req.Params = s.FindParams

	if s.Request.Granted != nil {
		req.Authorizer = s
	}

	return req, set.Bad
}

// user is who asks.
func (s *Scenario) user() policy.User {
	u := s.Request.User
	if u == nil {
		return policy.User{Name: Crossplane, Groups: policy.ServiceAccountGroups(Crossplane)}
	}

	return policy.User{Name: u.Name, Groups: u.Groups, UID: u.UID, Extra: u.Extra}
}

// errUnreadable is what who reads parameters says that cannot read them.
var errUnreadable = errors.New("boom")

// FindParams finds parameters of a scenario.
func (s *Scenario) FindParams(q policy.ParamQuery) ([]map[string]any, error) {
	if slices.Contains(s.Request.Unreadable, q.Kind.Kind) {
		return nil, errUnreadable
	}

	namespaced := slices.ContainsFunc(s.Params, func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind() == q.Kind && u.GetNamespace() != ""
	})
	if namespaced && q.Namespace == "" {
		return nil, policy.ErrParamNamespace
	}

	var out []map[string]any

	for _, u := range s.Params {
		here := u.GetNamespace() == "" || u.GetNamespace() == q.Namespace
		named := u.GetName() == q.Name || q.Selector != nil && q.Selector.Matches(labels.Set(u.GetLabels()))

		if here && named && u.GroupVersionKind() == q.Kind {
			out = append(out, u.Object)
		}
	}

	return out, nil
}

// errFailing is what an authorizer says that cannot be asked.
var errFailing = errors.New("the authorizer is away")

// Authorize is the cluster's authorizer of a scenario.
func (s *Scenario) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(s.Request.Granted, "failing") {
		return authorizer.DecisionNoOpinion, "", errFailing
	}

	what, where := s.asked(a)

	if slices.Contains(s.Request.Granted, what+where) || slices.Contains(s.Request.Granted, what+" in "+a.GetNamespace()+where) {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", nil
}

// asked is what the authorizer is asked for, as [Request] writes it: before and after the
// namespace.
func (s *Scenario) asked(a authorizer.Attributes) (what, where string) {
	what = a.GetVerb()

	switch {
	case !a.IsResourceRequest():
		what += " " + a.GetPath()
	case a.GetSubresource() != v1alpha1.SubresourceKausality || a.GetResource() != s.Request.Resource:
		what += " " + strings.TrimSuffix(a.GetResource()+"/"+a.GetSubresource(), "/")
	}

	if name := a.GetUser().GetName(); name != s.user().Name {
		where += " as " + name
	}

	if selected, err := a.GetFieldSelector(); err == nil && len(selected) > 0 {
		where += " where " + selected[0].Field + string(selected[0].Operator) + selected[0].Value
	}

	return what, where
}

func (s *Scenario) group() string {
	if s.New != nil {
		return s.New.GroupVersionKind().Group
	}

	return s.Old.GroupVersionKind().Group
}

// moment is noon of the day of the reference's window, before it opens, where
// nothing else is said.
func moment(t *time.Time) time.Time {
	if t != nil {
		return *t
	}

	return time.Date(2024, time.January, 6, 12, 0, 0, 0, time.UTC)
}

// Decide is what the engine makes of the request: want.yaml and patched.yaml.
func (s *Scenario) Decide() (want, patched string, err error) {
	req, bad := s.Decision()
	d := decision.Decide(req)

	w := Describe(d)
	for _, err := range bad {
		w.Problems = append(w.Problems, err.Error())
	}

	from := s.New
	if from == nil {
		from = s.Old
	}

	if patched, err = difference(from, d.Object); err != nil {
		return "", "", err
	}

	want, err = write(w)

	return want, patched, err
}

// Describe is a decision as want.yaml says it.
func Describe(d decision.Decision) Want {
	w := Want{
		Action: d.Action, Enforcements: d.Enforcements, Forged: d.Forged, Held: d.Held, Warnings: d.Warnings,
	}

	w.Denied = d.Answer().Reason

	for _, f := range d.Findings {
		out := Finding{
			Field: f.Change.Field, Verdict: f.Verdict, Rule: f.Rule, Policy: f.Policy, Initiator: f.Initiator(),
		}
		for _, l := range f.Lacks {
			out.Lacks = append(out.Lacks, Lack{Policy: l.Policy, What: l.What, Text: l.Text})
		}

		w.Findings = append(w.Findings, out)
	}

	for _, f := range d.Shadow {
		w.Shadow = append(w.Shadow, decision.ShadowText(f))
	}

	for _, err := range d.Problems {
		w.Problems = append(w.Problems, err.Error())
	}

	return w
}

// Plan is what the engine makes of the gate: want.yaml.
func (s *Scenario) Plan() (want string, err error) {
	opts := gate.Options{LateInitialize: !s.Gate.OldRuntime, Settle: time.Minute, MaxOpen: time.Hour, CloseOverdue: s.Gate.CloseOverdue}

	for _, o := range []struct {
		text string
		into *time.Duration
	}{{s.Gate.Settle, &opts.Settle}, {s.Gate.MaxOpen, &opts.MaxOpen}} {
		if o.text == "" {
			continue
		}

		if *o.into, err = time.ParseDuration(o.text); err != nil {
			return "", fmt.Errorf("cannot read %s: %w", fileGate, err)
		}
	}

	opts.PolicyGate, opts.Windows = s.policyGate(policy.NewCache()), s.Upgrades
	p, err := gate.PlanFor(s.Object, opts, moment(s.Gate.Now))
	out := Plan{Move: p.Move, Policies: p.Policies, Why: p.Why, Overdue: p.Overdue, Ungated: p.Ungated, Left: p.Allowances}

	if p.Broken != nil {
		out.Broken = p.Broken.Error()
	}

	out.ExternalName = p.ExternalName

	if out.Spec = p.Spec; p.Move != gate.Stay && p.Move != gate.PutBack {
		out.Record = &p.Record
		out.Record.Since = metav1.NewTime(out.Record.Since.UTC())
	}

	if p.Again > 0 {
		out.Again = p.Again.String()
	}

	if err != nil {
		out.Problem = err.Error()
	}

	return write(out)
}

// policyGate returns what the scenario's policies say of gates.
func (s *Scenario) policyGate(compiled *policy.Cache) func(name string) *policy.Gate {
	return func(name string) *policy.Gate {
		for i := range s.Policies {
			if s.Policies[i].GetName() == name {
				return compiled.Gate(&s.Policies[i])
			}
		}

		return nil
	}
}

// Keep is what the engine makes of the upkeep: want.yaml.
func (s *Scenario) Keep() (want string, err error) {
	annotations := decision.Upkeep(s.Object)
	if annotations == nil {
		annotations = map[string]string{}
	}

	return write(annotations)
}

// Run is what the engine makes of the scenario.
func (s *Scenario) Run() (want, patched string, err error) {
	switch {
	case s.Gate != nil:
		want, err = s.Plan()
	case s.Upkeep != nil:
		want, err = s.Keep()
	default:
		want, patched, err = s.Decide()
	}

	return want, patched, err
}

func write(v any) (string, error) {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	return string(raw), nil
}
