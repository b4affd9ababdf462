// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// deletion is the field that stands for the deletion of an object.
const deletion = v1alpha1.MutationDelete

// explanationDocument is what explain prints for programs. Lists are in the order in which
// they are tried.
type explanationDocument struct {
	header `json:",inline"`

	Object objectRef `json:"object"`
	// Parent of the object; absent for a root.
	Parent *objectRef `json:"parent,omitempty"`
	// Phase of the parent: Initializing, Steady, Deleting or Gone; absent for a root.
	Phase string `json:"phase,omitempty"`
	// Namespace in which bindings are found and Permissions asked; absent for none.
	Namespace string `json:"namespace,omitempty"`
	// User who is asked about, and groups.
	User   string   `json:"user"`
	Groups []string `json:"groups"`
	// Changes that were asked about, and what is decided of each.
	Changes []verdictEntry `json:"changes"`
	// Allowances that the parent carries for objects of the kind.
	Allowances []explainedAllowance `json:"allowances"`
	// Windows are the UpgradeAllowances about the kind, or the changes.
	Windows []explainedWindow `json:"windows"`
	// Policies are the AllowancePolicies about the kind, or the changes.
	Policies []explainedPolicy `json:"policies"`
	// Giving are the AllowancePolicies about the parent's kind that give allowances for the object.
	Giving []explainedPolicy `json:"giving"`
	// Enforcements whose rules are about the resource.
	Enforcements []explainedEnforcement `json:"enforcements"`
	// Action that is taken on changes that are not allowed; absent for none.
	Action string `json:"action,omitempty"`
	// Broken are the policies that do not compile, and grant nothing.
	Broken []brokenPolicy `json:"broken,omitempty"`
	// Problems say what could not be read or evaluated.
	Problems []string `json:"problems,omitempty"`
}

// explainedAllowance is an allowance of the parent.
type explainedAllowance struct {
	v1alpha1.Allowance `json:",inline"`

	// Covers are the fields of the changes that it is about.
	Covers []string `json:"covers,omitempty"`
	// Missing says why it does not serve; absent where it does.
	Missing string `json:"missing,omitempty"`
}

// explainedWindow is an UpgradeAllowance.
type explainedWindow struct {
	Name string `json:"name"`
	// ServiceAccount that it serves, as a user name.
	ServiceAccount string `json:"serviceAccount"`
	// ValidFrom is when it begins, and ValidUntil when it ends.
	ValidFrom  metav1.Time `json:"validFrom"`
	ValidUntil metav1.Time `json:"validUntil"`
	// Covers are the fields of the changes that it allows.
	Covers []string `json:"covers,omitempty"`
	// Missing says why it does not serve now; absent where it does.
	Missing string `json:"missing,omitempty"`
}

// explainedPolicy is an AllowancePolicy, with defaults filled in.
type explainedPolicy struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// Owner of it, as NAME (CONTACT).
	Owner string `json:"owner,omitempty"`
	// EnforcementMode is Enforce, or Shadow where it decides nothing.
	EnforcementMode string `json:"enforcementMode"`
	// BindingMode is None, Optional or Required.
	BindingMode string `json:"bindingMode"`
	// Approvals are how many other people have to approve what follows from a change of those who
	// may initiate it; absent where nobody has to.
	Approvals int32 `json:"approvals,omitempty"`
	// Fields of it, and ExcludeFields.
	Fields        []explainedField `json:"fields"`
	ExcludeFields []string         `json:"excludeFields,omitempty"`
	// Conditions are its selectors, parameters and conditions where a chain starts.
	Conditions []policy.Result `json:"conditions"`
	// Met is true where all of them hold.
	Met bool `json:"met"`
	// Subjects of it and of its bindings.
	Subjects []explainedSubject `json:"subjects"`
	// Bindings of it in the namespace.
	Bindings []explainedBinding `json:"bindings,omitempty"`
	// Initiates is true where the user may initiate by it; Missing says why not.
	Initiates bool   `json:"initiates"`
	Missing   string `json:"missing,omitempty"`
	// Allow is what may follow: KIND MUTATION, or external ACTION.
	Allow []string `json:"allow"`
}

// explainedField is a path that a policy is about.
type explainedField struct {
	Path string `json:"path"`
	// Covers are the fields of the changes below it.
	Covers []string `json:"covers,omitempty"`
}

// explainedSubject is a subject of a policy or of a binding.
type explainedSubject struct {
	v1alpha1.Subject `json:",inline"`

	// Binding that names it, as NAMESPACE/NAME; absent for the policy's own.
	Binding string `json:"binding,omitempty"`
	// User is true where the user is it.
	User bool `json:"user"`
}

// explainedBinding is an AllowanceBinding.
type explainedBinding struct {
	// Name of it, as NAMESPACE/NAME.
	Name string `json:"name"`
	// Conditions of it, and its parameters.
	Conditions []policy.Result `json:"conditions"`
	// Met is true where all of them hold.
	Met bool `json:"met"`
}

// explainedEnforcement is an Enforcement.
type explainedEnforcement struct {
	Name string `json:"name"`
	// Governs is true where it governs the object.
	Governs bool `json:"governs"`
	// Action that it takes on changes that are not allowed.
	Action string `json:"action"`
	// FailurePolicy is Fail or Ignore.
	FailurePolicy string `json:"failurePolicy"`
	// Problem is a condition that could not be evaluated.
	Problem string `json:"problem,omitempty"`
	// Exceptions of it.
	Exceptions []explainedException `json:"exceptions,omitempty"`
}

// explainedException is an exception of an Enforcement.
type explainedException struct {
	Name  string      `json:"name"`
	Until metav1.Time `json:"until"`
	// Reason for it.
	Reason string `json:"reason,omitempty"`
	// Covers are the fields of the changes that it is about.
	Covers []string `json:"covers,omitempty"`
	// Missing says why it does not serve the user; absent where it does.
	Missing string `json:"missing,omitempty"`
}

// brokenPolicy is a policy that does not compile.
type brokenPolicy struct {
	Name string `json:"name"`
	// Fields of it that are wrong.
	Fields []string `json:"fields"`
}

func (d explanationDocument) refs() []objectRef { return []objectRef{d.Object} }

// documentOfExplanation is an explanation as it is printed.
func documentOfExplanation(req request.Request, x explain.Explanation) explanationDocument {
	target := cmp.Or(req.New, req.Old)
	doc := explanationDocument{
		header: header{APIVersion: outputVersion, Kind: "Explanation"}, Object: refOf(target), Phase: string(x.Phase), Namespace: x.Home,
		User: req.User.Name, Groups: append([]string{}, req.User.Groups...), Action: string(x.Action),
		Changes: each(x.Changes, entryOf), Allowances: each(x.Allowances, allowanceOf), Windows: each(x.Windows, windowOf),
		Policies: each(x.Policies, policyOf), Giving: each(x.Giving, policyOf), Enforcements: each(x.Enforcements, enforcementOf),
		Broken: each(x.Broken, func(b policy.Broken) brokenPolicy { return brokenPolicy{b.Name, b.Fields} }),
	}

	if req.Parent != nil {
		ref := refOf(req.Parent)
		doc.Parent = &ref
	}

	for _, p := range x.Problems {
		doc.Problems = append(doc.Problems, p.Error())
	}

	return doc
}

// each is a list of something, made of another; a list also where that is empty.
func each[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = of(v)
	}

	return out
}

func allowanceOf(a explain.ExplainedAllowance) explainedAllowance {
	return explainedAllowance{Allowance: a.Allowance, Covers: a.Covers, Missing: a.Missing}
}

func windowOf(w explain.ExplainedWindow) explainedWindow {
	return explainedWindow{
		Name: w.UpgradeAllowance.GetName(), ServiceAccount: w.UpgradeAllowance.Spec.ServiceAccount,
		ValidFrom: w.UpgradeAllowance.Spec.ValidFrom, ValidUntil: w.UpgradeAllowance.Spec.ValidUntil,
		Covers: w.Covers, Missing: w.Missing,
	}
}

func policyOf(p explain.ExplainedPolicy) explainedPolicy {
	spec := p.Policy.Spec()
	out := explainedPolicy{
		Name: p.Policy.Name(), Generation: p.Policy.Generation(), BindingMode: cmp.Or(string(spec.BindingMode), string(v1alpha1.BindingModeNone)),
		EnforcementMode: cmp.Or(string(spec.EnforcementMode), string(v1alpha1.EnforcementModeEnforce)), ExcludeFields: spec.Match.ExcludeFields,
		Approvals:  p.Policy.RequiredApprovals(),
		Fields:     each(p.Fields, func(f explain.ExplainedField) explainedField { return explainedField{f.Path, f.Covers} }),
		Conditions: append([]policy.Result{}, p.Results...), Met: p.Met, Initiates: p.Initiates, Missing: p.Missing,
		Subjects: each(p.Subjects, func(s explain.ExplainedSubject) explainedSubject {
			return explainedSubject{Subject: s.Subject, Binding: s.Binding, User: s.User}
		}),
		Bindings: each(p.Bindings, func(b explain.ExplainedBinding) explainedBinding {
			return explainedBinding{Name: b.Binding.Name(), Conditions: append([]policy.Result{}, b.Results...), Met: b.Met}
		}),
	}

	if o := spec.Owner; o != nil {
		out.Owner = o.Name
		if o.Contact != "" {
			out.Owner += " (" + o.Contact + ")"
		}
	}

	for _, a := range spec.Allow {
		what := a.Kind
		if a.Relation == v1alpha1.RelationExternal {
			what = "external"
		} else if a.APIGroup != "" {
			what += "." + a.APIGroup
		}

		out.Allow = append(out.Allow, what+" "+strings.Join(a.Mutations, ", "))
	}

	out.Allow = slices.Concat([]string{}, out.Allow)

	return out
}

func enforcementOf(e explain.ExplainedEnforcement) explainedEnforcement {
	out := explainedEnforcement{
		Name: e.Enforcement.Name(), Governs: e.Governs, Action: string(e.Action),
		FailurePolicy: cmp.Or(string(e.Enforcement.Spec().FailurePolicy), string(v1alpha1.FailurePolicyFail)),
		Exceptions: each(e.Exceptions, func(x explain.ExplainedException) explainedException {
			return explainedException{
				Name: x.Exception.Name, Until: x.Exception.Until, Reason: x.Exception.Reason, Covers: x.Covers,
				Missing: x.Missing,
			}
		}),
	}

	if e.Problem != nil {
		out.Problem = e.Problem.Error()
	}

	return out
}
