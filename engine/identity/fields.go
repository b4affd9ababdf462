// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Fields are what decides in an installation, besides what is known of a kind, which external object a managed resource of it stands
// for. Nil for none.
type Fields map[schema.GroupKind][]field

var errFields = errors.New("it has to be KIND.GROUP=FIELD, or several fields with commas between them, such as " +
	"Topic.kafka.example.org=spec.forProvider.clusterId")

// ParseFields reads fields as KIND.GROUP=FIELD[,FIELD...], each below spec and in no list. The namespaced and the cluster-scoped form
// of a kind have the same. The error names the first text that is none.
func ParseFields(texts []string) (Fields, error) {
	var out Fields

	for _, text := range texts {
		name, list, _ := strings.Cut(text, "=")
		gk := schema.ParseGroupKind(name)

		if gk.Kind == "" || gk.Group == "" || strings.Contains(name, "*") {
			return nil, fmt.Errorf("cannot read identity %q: %w", text, errFields)
		}

		for field := range strings.SplitSeq(list, ",") {
			f, err := parseField(field)
			if err != nil {
				return nil, fmt.Errorf("cannot read identity %q: %w", text, err)
			}

			if out == nil {
				out = Fields{}
			}

			out[Family(gk)] = append(out[Family(gk)], f)
		}
	}

	return out, nil
}

// Texts are what [ParseFields] reads, in order; nil for none.
func (more Fields) Texts() []string {
	var out []string

	for gk, fields := range more {
		for _, f := range fields {
			out = append(out, gk.String()+"="+f.text)
		}
	}

	slices.Sort(out)

	return out
}

func parseField(text string) (field, error) {
	path, err := fieldpath.Parse(text)
	if err != nil {
		return field{}, err
	}

	if names, ok := path.Fields(); !ok || len(names) < 2 || names[0] != "spec" { //nolint:mnd // A field of spec.
		return field{}, errFields
	}

	return field{text: path.String(), path: path}, nil
}
