// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	openapiresolver "k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// schemas holds the schemas of the kinds that policies with expressions match.
// It is for one goroutine.
type schemas struct {
	discovery discovery.DiscoveryInterface
	known     map[schema.GroupVersionKind]knownSchema
}

// knownSchema is a schema as the API server gave it under a URL, which has a
// hash of it; nil when there was none.
type knownSchema struct {
	url    string
	schema *spec.Schema
}

// refresh gets the schemas of the kinds that policies with expressions match,
// as far as they have changed, and forgets all others. A schema that cannot be
// got is none, or the one before: type checking is only to inform. It says
// whether there is one for each kind; the API server publishes that of a new
// kind a moment after it serves it.
func (s *schemas) refresh(ctx context.Context, policies []v1alpha1.AllowancePolicy, kinds []servedKind) bool {
	known := map[schema.GroupVersionKind]knownSchema{}

	for i := range policies {
		for _, gvk := range checkedKinds(&policies[i], kinds) {
			known[gvk] = s.known[gvk]
		}
	}

	s.known = known
	if len(known) == 0 {
		return true
	}

	published, err := s.discovery.OpenAPIV3().Paths()
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot find schemas to check policies against", "error", err.Error())

		return false
	}

	complete := true

	for gvk, have := range known {
		if at, ok := published[openAPIPath(gvk.GroupVersion())]; ok && at.ServerRelativeURL() != have.url {
			known[gvk] = s.fetch(ctx, gvk, at.ServerRelativeURL(), have)
		}

		complete = complete && known[gvk].schema != nil
	}

	return complete
}

// fetch gets the schema of a kind that is published under a URL. That there is
// none is worth remembering; after another failure it is what it was.
func (s *schemas) fetch(ctx context.Context, gvk schema.GroupVersionKind, url string, was knownSchema) knownSchema {
	got, err := (&openapiresolver.ClientDiscoveryResolver{Discovery: s.discovery}).ResolveSchema(gvk)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot get the schema of a kind to check policies against", "kind", gvk.String(), "error", err.Error())
	}

	if err != nil && !errors.Is(err, openapiresolver.ErrSchemaNotFound) {
		return was
	}

	return knownSchema{url: url, schema: got}
}

// check returns what type checking finds in a policy's expressions, for each
// kind that it matches.
func (s *schemas) check(p *v1alpha1.AllowancePolicy, kinds []servedKind) []v1alpha1.TypeCheckingWarning {
	checked := checkedKinds(p, kinds)
	if len(checked) == 0 {
		return nil
	}

	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	for _, gvk := range checked {
		for _, w := range compiled.TypeCheck(s.known[gvk].schema) {
			w.Warning = fmt.Sprintf("%s, kind %s: %s", gvk.GroupVersion(), gvk.Kind, w.Warning)
			out = append(out, w)
		}
	}

	return out
}

// checkedKinds are the served kinds that a policy's expressions are about, each
// once; none without expressions.
func checkedKinds(p *v1alpha1.AllowancePolicy, kinds []servedKind) []schema.GroupVersionKind {
	if len(p.Spec.Match.CEL) == 0 {
		return nil
	}

	name := kindName{group: p.Spec.Match.APIGroup, kind: p.Spec.Match.Kind}

	var out []schema.GroupVersionKind

	for _, k := range kinds {
		if name.matches(k.gvk) && !slices.Contains(out, k.gvk) {
			out = append(out, k.gvk)
		}
	}

	return out
}

// openAPIPath is where the API server's index has a group version.
func openAPIPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}

	return "apis/" + gv.String()
}
