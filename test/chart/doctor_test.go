// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestTheDoctorFindsTheManagerByItsDeployment where the manager has not yet said
// on the webhook configurations what it is.
func TestTheDoctorFindsTheManagerByItsDeployment(t *testing.T) {
	t.Parallel()

	const by = "Deployment kausality-system/kausality-manager"

	for name, tc := range map[string]struct {
		reason, values string
		want           doctor.Manager
	}{
		"Defaults": {
			reason: "Its certificate is self-made.", values: "image: {tag: v1.2.3}",
			want: doctor.Manager{
				By: by, Version: "v1.2.3", Namespace: home, ServiceAccount: "kausality-manager", Heartbeat: "kausality-webhook", Leader: "kausality-manager", Elected: true,
				Secret: "kausality-webhook-cert", MaxOpen: time.Hour,
			},
		},
		"Mounted": {
			reason: "Its certificate is mounted.",
			values: "{image: {tag: v1.2.3}, gates: {maxOpen: 2h}, webhook: {certificate: {from: secret, secretName: mine}}}",
			want: doctor.Manager{
				By: by, Version: "v1.2.3", Namespace: home, ServiceAccount: "kausality-manager", Heartbeat: "kausality-webhook", Leader: "kausality-manager", Elected: true,
				Secret: "mine", Mounted: true, MaxOpen: 2 * time.Hour,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}

			found := doctor.FindManager(map[doctor.Source]doctor.List{doctor.Deployments: {Items: world.Parse(t, text)}})
			if diff := cmp.Diff(tc.want, found); diff != "" {
				t.Errorf("%s\nFindManager: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
