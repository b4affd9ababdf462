// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Broken are the fields that do not compile; none where all do. A broken
// Enforcement is about what its rules and those of its selectors and conditions
// that compile are about. Of the others nobody knows what they would leave out.
func (e *Enforcement) Broken() []string { return e.broken }

// Refuses reports whether the Enforcement cannot be evaluated and therefore refuses
// what it is about: its failure policy is Fail, and its action keeps changes
// from passing. One that only warns or audits never refuses.
func (e *Enforcement) Refuses() bool {
	return len(e.broken) > 0 && e.fails() && Strictness(e.Action()) >= Strictness(v1alpha1.ActionHold)
}

// fails reports whether what goes wrong counts for the Enforcement and not against
// it.
func (e *Enforcement) fails() bool {
	return e != nil && (len(e.broken) == 0 || e.spec.FailurePolicy != v1alpha1.FailurePolicyIgnore)
}

// compileSelector compiles a selector. One that does not compile leaves nothing
// out.
func compileSelector(in *metav1.LabelSelector, at *field.Path, errs *field.ErrorList) labels.Selector {
	before := len(*errs)

	out := policy.CompileSelector(in, at, errs)
	if len(*errs) > before {
		return labels.Everything()
	}

	return out
}

// Selectors of objects and of namespaces, as written; nil for one that leaves
// nothing out or does not compile.
func (e *Enforcement) Selectors() (objects, namespaces *metav1.LabelSelector) {
	if !e.objects.Empty() {
		objects = e.spec.Match.ObjectSelector
	}

	if !e.namespaces.Empty() {
		namespaces = e.spec.Match.NamespaceSelector
	}

	return objects, namespaces
}
