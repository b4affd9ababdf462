// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// labelManagedBy says which tool manages an object.
const labelManagedBy = "app.kubernetes.io/managed-by"

// OwnSelector selects what managers make for themselves.
const OwnSelector = v1alpha1.LabelOwn + "=true"

// OwnCertificate reports whether a Secret of [OwnSelector] holds the certificates
// that the manager made for itself, and nobody has taken it over since:
// cert-manager, another tool, or a person who applies it.
func OwnCertificate(secret *unstructured.Unstructured) bool {
	if len(secret.GetOwnerReferences()) > 0 || secret.GetLabels()[labelManagedBy] != "" {
		return false
	}

	for key := range secret.GetAnnotations() {
		if strings.HasPrefix(key, "cert-manager.io/") || key == corev1.LastAppliedConfigAnnotation {
			return false
		}
	}

	data := resource.Map(secret.Object, "data")

	for key := range data {
		if !slices.Contains([]string{"ca.crt", keyAuthority, "next.key", corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, key) {
			return false
		}
	}

	_, signs := data[keyAuthority]

	return signs
}

// keyAuthority is where the manager stores the private key of a CA of its own.
// Nobody else puts one there.
const keyAuthority = "ca.key"
