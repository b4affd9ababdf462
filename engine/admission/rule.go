// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
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
// group and version with the same operations.
type rules map[string]*admissionregistrationv1.RuleWithOperations

// addKind has a webhook be asked about operations on a kind, or a subresource of it such as "/scale", in one version: the API
// server converts what is written in another one, so that fields have the paths that policies name.
func (r rules) addKind(k kind.Served, subresource string, ops ...admissionregistrationv1.OperationType) {
	r.addIn(k.GVK.Group, k.GVK.Version, k.Resource+subresource, ops)
}

// add has a webhook or guard be asked about operations on a kind in whichever version they are made: no change of the versions
// that are served gets by.
func (r rules) add(group, resource string, ops ...admissionregistrationv1.OperationType) {
	r.addIn(group, "*", resource, ops)
}

func (r rules) addIn(group, version, resource string, ops []admissionregistrationv1.OperationType) {
	texts := make([]string, len(ops))
	for i, op := range ops {
		texts[i] = string(op)
	}

	key := group + "/" + version + "/" + strings.Join(texts, ",")

	rule, ok := r[key]
	if !ok {
		rule = &admissionregistrationv1.RuleWithOperations{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Scope: ptr.To(admissionregistrationv1.AllScopes),
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
	if slices.ContainsFunc(governed, func(s GovernedKind) bool { return s.Served.Managed }) {
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
