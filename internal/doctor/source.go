// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Source is a resource to read.
type Source struct {
	Group, Version, Resource string
	// Home is true if only what is in Kausality's own namespace is to be read.
	Home bool
}

const (
	groupAdmission  = "admissionregistration.k8s.io"
	groupCrossplane = "pkg.crossplane.io"
	v1              = "v1"
)

// What there is to read.
//
//nolint:gochecknoglobals // Constants that Go has no way to write.
var (
	CRDs              = Source{Group: "apiextensions.k8s.io", Version: v1, Resource: "customresourcedefinitions"}
	Mutating          = Source{Group: groupAdmission, Version: v1, Resource: "mutatingwebhookconfigurations"}
	Validating        = Source{Group: groupAdmission, Version: v1, Resource: "validatingwebhookconfigurations"}
	Guards            = Source{Group: groupAdmission, Version: v1, Resource: "validatingadmissionpolicies"}
	GuardBindings     = Source{Group: groupAdmission, Version: v1, Resource: "validatingadmissionpolicybindings"}
	Functions         = Source{Group: groupCrossplane, Version: v1, Resource: "functions"}
	Providers         = Source{Group: groupCrossplane, Version: v1, Resource: "providers"}
	Compositions      = Source{Group: "apiextensions.crossplane.io", Version: v1, Resource: "compositions"}
	Deployments       = Source{Group: "apps", Version: v1, Resource: "deployments"}
	AllowancePolicies = Source{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "allowancepolicies"}
	AllowanceBindings = Source{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "allowancebindings"}
	Enforcements      = Source{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "enforcements"}
	UpgradeAllowances = Source{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "upgradeallowances"}
	PendingChanges    = Source{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "pendingchanges"}
	Leases            = Source{Group: "coordination.k8s.io", Version: v1, Resource: "leases", Home: true}
	// Secrets are only [Manager.Secret] and those with [orphan.Label].
	Secrets = Source{Version: v1, Resource: "secrets", Home: true}
)

// Sources are all there is to read.
func Sources() []Source {
	return []Source{
		CRDs, Mutating, Validating, Guards, GuardBindings, Functions, Providers, Compositions, Deployments,
		AllowancePolicies, AllowanceBindings, Enforcements, UpgradeAllowances, PendingChanges, Leases, Secrets,
	}
}

// find returns what has a name; nil for nothing.
func (l List) find(name string) *unstructured.Unstructured {
	for _, u := range l.Items {
		if u.GetName() == name {
			return u
		}
	}

	return nil
}

// maps are the elements of a list that are objects.
func maps(obj map[string]any, path ...string) []map[string]any {
	var out []map[string]any

	for _, v := range resource.List(obj, path...) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}

	return out
}

func name(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return u.GetKind() + " " + ns + "/" + u.GetName()
	}

	return u.GetKind() + " " + u.GetName()
}

// lower makes a sentence a part of another.
func lower(s string) string {
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}
