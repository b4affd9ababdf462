// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestAWindowIsReconciledOnce for all changes of a request: whether it is open has
// nothing to do with them.
func TestAWindowIsReconciledOnce(t *testing.T) {
	const (
		changes = 200
		windows = 50
	)

	spec := func(value string) map[string]any {
		out := map[string]any{}
		for i := range changes {
			out[fmt.Sprint("f", i)] = value
		}

		return out
	}

	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Rack", "metadata": map[string]any{"name": "r"}, "spec": spec(value),
		}}
	}

	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

	allocations := func(n int) float64 {
		list := make([]v1alpha1.UpgradeAllowance, n)
		for i := range list {
			list[i].Name = fmt.Sprint("w", i)
			list[i].Spec = v1alpha1.UpgradeAllowanceSpec{
				ServiceAccount: crossplaneUser, ValidFrom: metav1.NewTime(now.Add(-time.Hour)), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": strconv.Itoa(i)}},
			}
		}

		req := request.Request{
			Operation: request.OperationUpdate, Old: object("a"), New: object("b"), User: policy.User{Name: crossplaneUser}, Basis: request.Basis{Upgrades: compiled(t, list...), Now: now},
		}

		return testing.AllocsPerRun(3, func() { decision.Decide(req) })
	}

	// The selectors are parsed already: the labels are read once for each.
	if more := allocations(windows) - allocations(0); more > 5*windows {
		t.Errorf("%d windows take %.0f allocations for %d changes", windows, more, changes)
	}
}
