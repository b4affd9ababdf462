// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"encoding/json"
	"fmt"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// toNode turns a value into a YAML document by way of its JSON, which keeps
// the order of struct fields and sorts map keys; JSON is YAML in flow style,
// so only the style has to be taken off.
func toNode(v any) (*goyaml.Node, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode annotation: %w", err)
	}

	doc := &goyaml.Node{}
	if err := goyaml.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("cannot encode annotation: %w", err)
	}

	blockStyle(doc)

	return doc, nil
}

// blockStyle takes off JSON's flow style and its quotes where YAML needs none.
// The encoder quotes again what would otherwise read as another type.
func blockStyle(n *goyaml.Node) {
	n.Style &^= goyaml.FlowStyle | goyaml.DoubleQuotedStyle

	if len(n.Content) == 0 && n.Kind != goyaml.ScalarNode {
		n.Style |= goyaml.FlowStyle
	}

	for _, c := range n.Content {
		blockStyle(c)
	}
}
