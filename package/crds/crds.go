// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds has the CRDs of Kausality's own kinds, as they are installed.
package crds

import (
	"embed"
	"fmt"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// All are all of them, by the name of their file.
func All() ([]*extv1.CustomResourceDefinition, error) {
	list, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("cannot list the CRDs: %w", err)
	}

	out := make([]*extv1.CustomResourceDefinition, 0, len(list))

	for _, file := range list {
		raw, err := files.ReadFile(file.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read CRD %q: %w", file.Name(), err)
		}

		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("cannot read CRD %q: %w", file.Name(), err)
		}

		out = append(out, crd)
	}

	return out, nil
}
