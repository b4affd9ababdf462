// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

func TestGatesHearOfAWindowThatTurnsAndNotOfItsUses(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		change func(*v1alpha1.UpgradeAllowance)
		want   bool
	}{
		"Spec":    {"It asks for something else.", func(u *v1alpha1.UpgradeAllowance) { u.Generation++ }, true},
		"Active":  {"It is in force now.", func(u *v1alpha1.UpgradeAllowance) { u.Status.Active = true }, true},
		"Looked":  {"Somebody has looked at what it asks for.", func(u *v1alpha1.UpgradeAllowance) { u.Status.ObservedGeneration = 1 }, true},
		"Labels":  {"Nor do labels.", func(u *v1alpha1.UpgradeAllowance) { u.SetLabels(map[string]string{"a": "b"}) }, false},
		"Nothing": {"Nor does looking at all once more.", func(*v1alpha1.UpgradeAllowance) {}, false},
	}

	for name, tc := range cases {
		now := givingWindow()
		tc.change(now)

		if got := changed(givingWindow(), now); got != tc.want {
			t.Errorf("%s: %s turned: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}

// givingWindow opens gates by itself.
func givingWindow() *v1alpha1.UpgradeAllowance {
	return &v1alpha1.UpgradeAllowance{ObjectMeta: metav1.ObjectMeta{Name: "provider-v2", Generation: 1}}
}
