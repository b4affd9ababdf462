// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// LabelsOfKind select the AllowancePolicies that match changes of a kind, in any
// group.
func LabelsOfKind(kind string) map[string]string {
	return map[string]string{v1alpha1.LabelKindPrefix + labelValue(kind): ""}
}

// LabelsOfMatch are the labels of an AllowancePolicy by which it is selected. Functions
// of before one could be about several kinds ask for another one.
func LabelsOfMatch(m *v1alpha1.Match) map[string]string {
	out := map[string]string{}
	for _, gk := range KindsOf(m) {
		maps.Copy(out, LabelsOfKind(gk.Kind))
	}

	if m.Kind != "" {
		out[v1alpha1.LabelKind] = labelValue(m.Kind)
	}

	return out
}

// SelectsByKind reports whether a label is one of those of [LabelsOfMatch].
func SelectsByKind(key string) bool {
	return key == v1alpha1.LabelKind || strings.HasPrefix(key, v1alpha1.LabelKindPrefix)
}

// LabelsOfServiceAccount select the UpgradeAllowances for a service account,
// given by its user name.
func LabelsOfServiceAccount(user string) map[string]string {
	name := strings.ReplaceAll(strings.TrimPrefix(user, serviceaccount.ServiceAccountUsernamePrefix), ":", ".")

	return map[string]string{v1alpha1.LabelServiceAccount: labelValue(name)}
}

// labelValue is a text as the value of a label: a part of its hash where it
// cannot be one.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}

	sum := sha256.Sum256([]byte(text))

	return hex.EncodeToString(sum[:16])
}
