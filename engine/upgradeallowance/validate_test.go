// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

func TestAWindowThatDoesNothingIsWarnedOf(t *testing.T) {
	outside := func(selector *metav1.LabelSelector, actions ...string) *v1alpha1.UpgradeAllowance {
		u := of(nil)
		u.Spec.Selector = selector
		u.Spec.Allow = []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: actions}}

		return u
	}
	all := &metav1.LabelSelector{}

	for name, tc := range map[string]struct {
		window *v1alpha1.UpgradeAllowance
		want   string
	}{
		"Objects":       {of(nil), ""},
		"Selected":      {outside(all, "Update"), ""},
		"OtherSystem":   {outside(all, "apply"), ""},
		"NothingAtAll":  {outside(nil, "Update"), "spec.selector"},
		"DeletionsOnly": {outside(all, "Delete", "destroy"), "spec.allow"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(upgradeallowance.Warnings(tc.window), "; ")
			if at, _, _ := strings.Cut(got, ":"); at != tc.want {
				t.Errorf("Warnings: %q, want one about %q", got, tc.want)
			}
		})
	}
}
