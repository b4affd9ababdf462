// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// input is what expressions and selectors see: the new object with our
// annotations as they were.
func (r *Request) input() expression.Input {
	in := expression.Input{Request: r.describe, Now: r.Basis.Now, Params: r.Basis.Params}

	if r.New != nil {
		in.Object = r.New.Object
	}

	if r.Old != nil {
		in.OldObject = r.Old.Object
	}

	if r.Namespace != nil {
		in.NamespaceObject = r.Namespace.Object
	}

	if r.Parent != nil {
		in.Parent = r.Parent.Object
	}

	if r.Authorizer != nil {
		in.Asking = r.asking
	}

	return in
}

// InputOf is what they see of some objects of the request.
func (r *Request) InputOf(o Objects) expression.Input {
	if r.Operation == o.Operation && r.Old == o.Old && r.New == o.New && r.Parent == o.Parent {
		return r.input()
	}

	of := *r
	of.Operation, of.Old, of.New, of.Parent = o.Operation, o.Old, o.New, o.Parent

	return of.input()
}

// ReadsParent reports whether a request is decided by more of the parent than
// decisions otherwise need, see [resource.Trim]: an expression reads it.
func (r *Request) ReadsParent() bool {
	gk := r.groupKind()

	return r.Basis.Policies.ReadsParent(gk, r.Basis.Bindings) ||
		slices.ContainsFunc(r.Basis.Enforcements, func(e *enforcement.Enforcement) bool { return e.ReadsParent() && e.Covers(r.Resource) })
}

// ShadowReadsParent reports whether it would be, were all in force that is in Shadow mode.
func (r *Request) ShadowReadsParent() bool {
	return r.Basis.Policies.ShadowReadsParent(r.groupKind(), r.Basis.Bindings)
}

// asking is what expressions ask the cluster's authorizer by.
func (r *Request) asking() expression.Asking {
	return expression.Asking{Authorizer: r.Authorizer, User: UserInfo(r.User), Resource: requested{r}}
}

// requested is the resource of a request, as checks of the authorizer name it.
type requested struct{ Request *Request }

// GetName is empty where the object gets its name later.
func (r requested) GetName() string { return r.Request.target().GetName() }

// GetNamespace is empty for what is cluster-scoped.
func (r requested) GetNamespace() string { return r.Request.target().GetNamespace() }

// GetResource has the version that the object is in.
func (r requested) GetResource() schema.GroupVersionResource {
	return r.Request.Resource.WithVersion(r.Request.target().GroupVersionKind().Version)
}

// GetSubresource is empty for the object itself.
func (r requested) GetSubresource() string { return r.Request.Subresource }

// describe is the variable request.
func (r *Request) describe() map[string]any {
	groups := make([]any, len(r.User.Groups))
	for i, g := range r.User.Groups {
		groups[i] = g
	}

	extra := make(map[string]any, len(r.User.Extra))
	for key, values := range r.User.Extra {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}

		extra[key] = list
	}

	gvk := r.target().GroupVersionKind()
	out := map[string]any{
		"operation":   string(r.Operation),
		"kind":        map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		"resource":    map[string]any{"group": r.Resource.Group, "version": gvk.Version, "resource": r.Resource.Resource},
		"subResource": r.Subresource,
		"name":        resource.Name(r.target()),
		"namespace":   resource.String(r.target().Object, "metadata", "namespace"),
		"userInfo":    map[string]any{"username": r.User.Name, "uid": r.User.UID, "groups": groups, "extra": extra},
		"dryRun":      r.DryRun,
	}

	if r.Options != nil {
		out["options"] = r.Options
	}

	return out
}

// UserInfo is a user as authorizers know one.
func UserInfo(u policy.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}
