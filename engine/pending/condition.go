// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// maxNamed is how many XRs a condition names.
const maxNamed = 10

// conditions are those from before, and whether the list is of now.
func (s *summary) conditions() []metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionCurrent, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCurrent,
		Message: "this is what is held",
	}

	if len(s.lost) > 0 {
		keys := slices.SortedFunc(maps.Keys(s.lost), CompareKeys)
		names := make([]string, 0, maxNamed)

		for _, k := range keys[:min(len(keys), maxNamed)] {
			names = append(names, fmt.Sprintf("%s %q", k.Kind, k.Name))
		}

		if more := len(keys) - maxNamed; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}

		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonPipelineFailed
		c.Message = fmt.Sprintf("the pipeline of %s failed: what it held before is listed, and what it would hold now is not known",
			strings.Join(names, ", "))
	}

	out := s.Input.Previous.DeepCopy().Conditions
	SetCondition(&out, c, s.now)

	return out
}

// SetCondition sets one condition among others, which stay in order. The time of its last
// transition stays as long as status and reason do.
func SetCondition(list *[]metav1.Condition, c metav1.Condition, now metav1.Time) {
	c.LastTransitionTime = now
	if was := meta.FindStatusCondition(*list, c.Type); was != nil && was.Status == c.Status && was.Reason == c.Reason {
		c.LastTransitionTime = was.LastTransitionTime
	}

	*list = append(slices.DeleteFunc(*list, func(o metav1.Condition) bool { return o.Type == c.Type }), c)
	slices.SortFunc(*list, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}
