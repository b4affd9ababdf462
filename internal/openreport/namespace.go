// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package openreport

import (
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// ByNamespace are findings by the namespace that they matter to; empty for none.
func ByNamespace(list []audit.Finding) map[string][]audit.Finding {
	out := map[string][]audit.Finding{}
	for _, f := range list {
		out[f.Namespace] = append(out[f.Namespace], f)
	}

	return out
}

// Namespaces are those of findings in the order in which Reports are written: the cluster's,
// empty, comes last, be there anything of it or not. It has what those cannot have that are
// gone, see [NamespaceGone].
func Namespaces(by map[string][]audit.Finding) []string {
	out := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(namespace string) bool { return namespace == "" })

	return append(out, "")
}

// NamespaceGone reports whether a Report was not created because its namespace is not there: an
// XR may outlive that of its Claim.
func NamespaceGone(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)

	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}
