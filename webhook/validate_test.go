// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

func TestAWindowThatOpensNothingIsStoredWithAWarning(t *testing.T) {
	t.Parallel()

	for selector, warns := range map[string]bool{"": true, `"selector": {},`: false} {
		res := webhook.Validator{}.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind{Group: "kausality.io", Version: "v1alpha1", Kind: "UpgradeAllowance"}, Name: "w",
			Object: runtime.RawExtension{Raw: []byte(`{"metadata": {"name": "w"}, "spec": {` + selector + `
				"validFrom": "2026-01-01T00:00:00Z", "validUntil": "2027-01-01T00:00:00Z",
				"allow": [{"relation": "External", "mutations": ["Update"]}]}}`)},
		}})

		warned := len(res.Warnings) == 1 && strings.HasPrefix(res.Warnings[0], "spec.selector: ")
		if !res.Allowed || warned != warns || !warns && len(res.Warnings) > 0 {
			t.Errorf("with %q: allowed %t, warnings %q", selector, res.Allowed, res.Warnings)
		}
	}
}
