// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kausality.io/v1alpha1 API: the policies that say
// which change may cause which other change, the windows and enforcements
// around them, the composition function's input, and the payloads Kausality
// keeps in annotations.
//
// +kubebuilder:object:generate=true
// +groupName=kausality.io
package v1alpha1
