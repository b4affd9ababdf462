// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKindIsUngovernedOnlyWhereAllIsKnown(t *testing.T) {
	configMap, bucket := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Group: "example.org", Kind: "Bucket"}
	both := map[schema.GroupKind]bool{configMap: true, bucket: true}
	gated := map[schema.GroupKind]bool{bucket: true}

	for name, tc := range map[string]struct {
		reason string
		kind   schema.GroupKind
		known  Findings
		want   bool
	}{
		"NoGate":  {reason: "Nothing is passed on to it.", kind: configMap, known: Findings{Complete: true, Kinds: both, gated: gated}, want: true},
		"Gate":    {reason: "A managed resource may have to know.", kind: bucket, known: Findings{Complete: true, Kinds: both, gated: gated}},
		"Unknown": {reason: "It may have one.", kind: configMap, known: Findings{Complete: true, gated: gated}},
		"Unread":  {reason: "Nobody knows yet.", kind: configMap, known: Findings{Kinds: both, gated: gated}},
		"XR":      {reason: "An XR may own what has one.", kind: configMap, known: Findings{Complete: true, Kinds: both, xrs: both}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Kinds{known: tc.known}).Ungoverned(tc.kind); got != tc.want {
				t.Errorf("%s\nungoverned: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
