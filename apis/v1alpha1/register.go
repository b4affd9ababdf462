// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of every kind in this package.
const Group = "kausality.io"

// Version is the API version of every kind in this package.
const Version = "v1alpha1"

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&AllowancePolicy{}, &AllowancePolicyList{},
		&AllowanceBinding{}, &AllowanceBindingList{},
		&UpgradeAllowance{}, &UpgradeAllowanceList{},
		&Enforcement{}, &EnforcementList{},
		&PendingChange{}, &PendingChangeList{},
		&ChangeApproval{}, &ChangeApprovalList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())

	return nil
}
