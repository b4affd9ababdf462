// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestTheDecisionLogHasAVolume compares the Deployments with those without the log. What is
// logged is on the volume, the only thing that is mounted and can be written.
func TestTheDecisionLogHasAVolume(t *testing.T) {
	t.Parallel()

	mount := corev1.VolumeMount{Name: "decisions", MountPath: "/var/log/kausality"}
	limit := resource.MustParse("1258291200")
	small := resource.MustParse("327680")

	for name, tc := range map[string]struct {
		reason, values string
		mounts         []corev1.VolumeMount
		volume         *corev1.VolumeSource
	}{
		"Off": {"Nothing is mounted that is not asked for.", "decisionLog: {volume: {hostPath: {path: /a}}}", nil, nil},
		"EmptyDir": {
			"There is room for twelve files of 100 MiB: ten, one that is being compressed, and one too many.",
			"decisionLog: {enabled: true}",
			[]corev1.VolumeMount{mount},
			&corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}},
		},
		"Small": {
			"The room goes by the bounds.", "decisionLog: {enabled: true, maxBytes: 65536, maxFiles: 3}",
			[]corev1.VolumeMount{mount},
			&corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &small}},
		},
		"Claim": {
			"A volume may be anything.", "decisionLog: {enabled: true, volume: {persistentVolumeClaim: {claimName: decisions}}}",
			[]corev1.VolumeMount{mount},
			&corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "decisions"}},
		},
		"BesideACertificate": {
			"It is mounted beside others.", "{decisionLog: {enabled: true}, webhook: {certificate: {from: secret}}}",
			[]corev1.VolumeMount{{Name: "webhook", MountPath: "/etc/kausality/webhook", ReadOnly: true}, mount},
			&corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}

			pod := deployment(t, world.Parse(t, text)).Spec.Template.Spec
			restricted(t, pod)

			if diff := cmp.Diff(tc.mounts, pod.Containers[0].VolumeMounts); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			var volume *corev1.VolumeSource
			if i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }); i >= 0 {
				volume = &pod.Volumes[i].VolumeSource
			}

			if diff := cmp.Diff(tc.volume, volume); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			logs := strings.Contains(strings.Join(pod.Containers[0].Args, " "), "--decision-log")
			named := slices.ContainsFunc(pod.Containers[0].Env, func(e corev1.EnvVar) bool {
				return e.Name == "POD_NAME" && e.ValueFrom.FieldRef.FieldPath == "metadata.name"
			})

			if wanted := tc.volume != nil; logs != wanted || named != wanted {
				t.Errorf("%s\nit logs: %t, it knows its Pod's name: %t; want %t", tc.reason, logs, named, wanted)
			}
		})
	}
}
