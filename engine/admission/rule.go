// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Operations that rules are about.
const (
	opCreate = admissionregistrationv1.Create
	opUpdate = admissionregistrationv1.Update
	opDelete = admissionregistrationv1.Delete
)

// operationsOf are operations as a webhook's rule has them.
func operationsOf(list []v1alpha1.Operation) []admissionregistrationv1.OperationType {
	out := make([]admissionregistrationv1.OperationType, len(list))
	for i, op := range list {
		out[i] = admissionregistrationv1.OperationType(op)
	}

	return out
}

// rules collects what a webhook is asked about: one rule for all resources of a
// group with the same operations.
type rules map[string]*admissionregistrationv1.RuleWithOperations

// add has a webhook be asked about operations on a kind.
func (r rules) add(group, resource string, ops ...admissionregistrationv1.OperationType) {
	texts := make([]string, len(ops))
	for i, op := range ops {
		texts[i] = string(op)
	}

	key := group + "/" + strings.Join(texts, ",")

	rule, ok := r[key]
	if !ok {
		rule = &admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Scope: ptr.To(admissionregistrationv1.AllScopes),
		}}
		r[key] = rule
	}

	if !slices.Contains(rule.Resources, resource) {
		rule.Resources = append(rule.Resources, resource)
		slices.Sort(rule.Resources)
	}
}

// addNamespaces has a webhook be asked about the deletion of namespaces where it
// may take gated resources along.
func (r rules) addNamespaces(governed []GovernedKind) {
	if slices.ContainsFunc(governed, func(s GovernedKind) bool { return s.Managed }) {
		r.add("", "namespaces", opDelete)
	}
}

// list returns the rules in order.
func (r rules) list() []admissionregistrationv1.RuleWithOperations {
	keys := make([]string, 0, len(r))
	for key := range r {
		keys = append(keys, key)
	}

	slices.Sort(keys)

	out := make([]admissionregistrationv1.RuleWithOperations, len(keys))
	for i, key := range keys {
		out[i] = *r[key]
	}

	return out
}
