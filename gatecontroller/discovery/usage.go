// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// categoryProvider is that of what providers are configured by, and of what shows
// that a configuration is used.
//
// Source: crossplane-runtime's and upjet's ProviderConfigUsage,
// +kubebuilder:resource:categories={crossplane,provider,...}.
const categoryProvider = "provider"

// Usages are the kinds that show which managed resource uses which provider's
// configuration. They are found by their shape: those of a family of
// providers are in a group of the family, and not in that of the resources.
func (r *Resolver) Usages(ctx context.Context, served []kind.Served) ([]kind.Served, error) {
	var out []kind.Served

	for _, k := range served {
		if !k.Configures {
			continue
		}

		one := []kind.Served{k}
		if err := r.Describe(ctx, one); err != nil {
			return nil, err
		}

		if r.Described[k.Definition].usage {
			out = append(out, k)
		}
	}

	return out, nil
}

// isUsage reports whether objects of a version of a kind refer to a provider's
// configuration and to the resource that uses it.
//
// Source: github.com/crossplane/crossplane-runtime/v2 apis/common,
// ProviderConfigUsage and TypedProviderConfigUsage.
func isUsage(object map[string]extv1.JSONSchemaProps) bool {
	_, config := object["providerConfigRef"]
	_, uses := object["resourceRef"]

	return config && uses
}
