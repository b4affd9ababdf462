// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Check checks the match conditions against the schema of a kind, whose references
// are resolved. What it finds is for a person to read and makes no difference to
// how they are evaluated. Of conditions that do not compile, and without a schema, it finds
// nothing.
func (e *Enforcement) Check(s *spec.Schema) []v1alpha1.TypeCheckingWarning {
	at := field.NewPath("spec", "matchConditions")

	return policy.CheckExpressions(s, e.conditions, func(i int) *field.Path { return at.Index(e.written[i]).Child("expression") })
}
