// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clients connects managed resources to the server that their
// ProviderConfig says.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	upjet "github.com/crossplane/upjet/v2/pkg/terraform"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cluster "github.com/kausality-io/kausality-crossplane/test/upjet/apis/cluster/v1beta1"
	namespaced "github.com/kausality-io/kausality-crossplane/test/upjet/apis/namespaced/v1beta1"
	"github.com/kausality-io/kausality-crossplane/test/upjet/terraform"
)

// Setup returns what configures the Terraform provider for a managed resource.
func Setup(servers *terraform.Servers) upjet.SetupFn {
	return func(ctx context.Context, kube client.Client, mg resource.Managed) (upjet.Setup, error) {
		w, err := credentials(ctx, kube, mg)
		if err != nil {
			return upjet.Setup{}, err
		}

		raw, err := resource.CommonCredentialExtractor(ctx, w.source, kube, w.selectors)
		if err != nil {
			return upjet.Setup{}, fmt.Errorf("cannot read credentials: %w", err)
		}

		c := terraform.Credentials{}
		if err := json.Unmarshal(raw, &c); err != nil {
			return upjet.Setup{}, errors.New("cannot read credentials: they are no JSON of host, port, username, password")
		}

		return upjet.Setup{Meta: servers.Of(c)}, nil
	}
}

// where says where credentials are.
type where struct {
	source    xpv1.CredentialsSource
	selectors xpv1.CommonCredentialSelectors
}

// credentials says where the credentials are, and records that a managed resource
// uses its ProviderConfig.
func credentials(ctx context.Context, kube client.Client, mg resource.Managed) (where, error) {
	switch mg := mg.(type) {
	case resource.LegacyManaged:
		return ofCluster(ctx, kube, mg)
	case resource.ModernManaged:
		return ofNamespace(ctx, kube, mg)
	default:
		return where{}, fmt.Errorf("cannot find the ProviderConfig of %q: a %T refers to none", mg.GetName(), mg)
	}
}

func ofCluster(ctx context.Context, kube client.Client, mg resource.LegacyManaged) (where, error) {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return where{}, fmt.Errorf("cannot find the ProviderConfig of %q: it refers to none", mg.GetName())
	}

	config := &cluster.ProviderConfig{}
	if err := kube.Get(ctx, client.ObjectKey{Name: ref.Name}, config); err != nil {
		return where{}, fmt.Errorf("cannot read ProviderConfig %q: %w", ref.Name, err)
	}

	usage := resource.NewLegacyProviderConfigUsageTracker(kube, &cluster.ProviderConfigUsage{})
	if err := usage.Track(ctx, mg); err != nil {
		return where{}, fmt.Errorf("cannot record the use of ProviderConfig %q: %w", ref.Name, err)
	}

	c := config.Spec.Credentials

	return where{c.Source, c.CommonCredentialSelectors}, nil
}

func ofNamespace(ctx context.Context, kube client.Client, mg resource.ModernManaged) (where, error) {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return where{}, fmt.Errorf("cannot find the ProviderConfig of %q: it refers to none", mg.GetName())
	}

	var c namespaced.ProviderCredentials

	switch ref.Kind {
	case "ClusterProviderConfig":
		config := &namespaced.ClusterProviderConfig{}
		if err := kube.Get(ctx, client.ObjectKey{Name: ref.Name}, config); err != nil {
			return where{}, fmt.Errorf("cannot read ClusterProviderConfig %q: %w", ref.Name, err)
		}

		c = config.Spec.Credentials
	default:
		config := &namespaced.ProviderConfig{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: mg.GetNamespace(), Name: ref.Name}, config); err != nil {
			return where{}, fmt.Errorf("cannot read ProviderConfig %q: %w", ref.Name, err)
		}

		c = config.Spec.Credentials
		if c.SecretRef != nil {
			c.SecretRef.Namespace = mg.GetNamespace()
		}
	}

	usage := resource.NewProviderConfigUsageTracker(kube, &namespaced.ProviderConfigUsage{})
	if err := usage.Track(ctx, mg); err != nil {
		return where{}, fmt.Errorf("cannot record the use of %s %q: %w", ref.Kind, ref.Name, err)
	}

	return where{c.Source, c.CommonCredentialSelectors}, nil
}
