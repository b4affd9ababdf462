// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config says what upjet makes of the Terraform provider.
package config

import (
	"encoding/json"
	"fmt"

	"github.com/crossplane/upjet/v2/pkg/config"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/zclconf/go-cty/cty"

	"github.com/kausality-io/kausality-crossplane/test/upjet/terraform"
)

const (
	prefix     = "postgresql"
	modulePath = "github.com/kausality-io/kausality-crossplane/test/upjet"
	// version of all kinds.
	version = "v1beta1"
	// group is the first part of the API group of managed resources; that of
	// ProviderConfigs and their usages has none, as in the families of providers.
	group = "sql"
)

// Cluster returns the configuration of the cluster-scoped kinds.
func Cluster() (*config.Provider, error) { return provider(prefix + ".example.org") }

// Namespaced returns the configuration of the namespaced kinds.
func Namespaced() (*config.Provider, error) { return provider(prefix + ".m.example.org") }

func provider(rootGroup string) (*config.Provider, error) {
	tf := terraform.Provider()

	schemas, documents, err := described(tf)
	if err != nil {
		return nil, err
	}

	p := config.NewProvider(schemas, prefix, modulePath, documents,
		config.WithRootGroup(rootGroup),
		config.WithIncludeList(nil),
		config.WithTerraformPluginSDKIncludeList([]string{".+"}),
		config.WithTerraformProvider(tf),
		config.WithFeaturesPackage("features"),
		config.WithBasePackages(config.BasePackages{
			APIVersion:    []string{version},
			ControllerMap: map[string]string{"providerconfig": config.PackageNameConfig},
		}),
		config.WithDefaultResourceOptions(func(r *config.Resource) {
			r.ShortGroup, r.Version = group, version
			r.UseAsync = true
			configure(r)
		}))
	p.ConfigureResources()

	return p, nil
}

// configure says how a resource is named, and what it refers to.
func configure(r *config.Resource) {
	refers := func(attribute, to string) {
		r.References[attribute] = config.Reference{TerraformName: to}
	}

	switch r.Name {
	case terraform.Database:
		refers("owner", terraform.Role)
	case terraform.Grant:
		r.ExternalName = config.TemplatedStringAsIdentifier("", "{{ .parameters.role }}/{{ .parameters.database }}")
		refers("role", terraform.Role)
		refers("database", terraform.Database)
	case terraform.View:
		r.ExternalName = config.TemplatedStringAsIdentifier("name", "{{ .parameters.database }}/{{ .external_name }}")
		refers("database", terraform.Database)
	}
}

// described returns what `terraform providers schema -json` prints of a provider,
// as far as upjet reads it (it takes the schemas from the provider itself), and
// what upjet reads out of its documentation.
func described(p *schema.Provider) (schemas, documents []byte, err error) {
	resources := map[string]*tfjson.Schema{}
	descriptions := map[string]map[string]string{}

	for name, r := range p.ResourcesMap {
		block := &tfjson.SchemaBlock{Attributes: map[string]*tfjson.SchemaAttribute{}}
		for attribute := range r.CoreConfigSchema().Attributes {
			block.Attributes[attribute] = &tfjson.SchemaAttribute{AttributeType: cty.String, Optional: true}
		}

		resources[name] = &tfjson.Schema{Block: block}
		descriptions[name] = map[string]string{"name": name, "description": r.Description}
	}

	schemas, err = json.Marshal(tfjson.ProviderSchemas{
		FormatVersion: "1.0",
		Schemas:       map[string]*tfjson.ProviderSchema{prefix: {ResourceSchemas: resources}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot describe provider: %w", err)
	}

	documents, err = json.Marshal(map[string]any{"name": prefix, "resources": descriptions})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot describe provider: %w", err)
	}

	return schemas, documents, nil
}
