// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// LabelsOfKind select the AllowancePolicies that match changes of a kind, in
// any group.
func LabelsOfKind(kind string) map[string]string {
	return map[string]string{v1alpha1.LabelKind: labelValue(kind)}
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
