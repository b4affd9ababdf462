// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// input is what expressions and selectors see: the new object with our
// annotations as they were.
func (r *Request) input() policy.Input {
	in := policy.Input{Request: r.describe}

	if r.New != nil {
		in.Object = r.New.Object
	}

	if r.Old != nil {
		in.OldObject = r.Old.Object
	}

	if r.Namespace != nil {
		in.NamespaceObject = r.Namespace.Object
	}

	return in
}

// describe is the variable request.
func (r *Request) describe() map[string]any {
	groups := make([]any, len(r.User.Groups))
	for i, g := range r.User.Groups {
		groups[i] = g
	}

	return map[string]any{
		"operation": string(r.Operation),
		"name":      resource.Name(r.target()),
		"namespace": resource.String(r.target().Object, "metadata", "namespace"),
		"userInfo":  map[string]any{"username": r.User.Name, "groups": groups},
	}
}
