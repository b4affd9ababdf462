// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	openapiresolver "k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// Schemas holds the schemas of the kinds that policies name. One goroutine refreshes
// them, of many that check.
type Schemas struct {
	Discovery discovery.DiscoveryInterface

	mu sync.RWMutex
	// known is replaced, and never modified.
	known map[schema.GroupVersionKind]knownSchema
}

// of returns the schema of a kind; nil for none.
func (s *Schemas) of(gvk schema.GroupVersionKind) *spec.Schema {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.known[gvk].schema
}

// set replaces all schemas.
func (s *Schemas) set(known map[schema.GroupVersionKind]knownSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.known = known
}

// knownSchema is a schema as the API server gave it under a URL, which has a
// hash of it; nil when there was none.
type knownSchema struct {
	url    string
	schema *spec.Schema
}

// Refresh gets the schemas of the kinds that policies name, and of others that are
// asked for, as far as they have changed, and forgets all others. A schema that cannot be
// got is none, or the one before: type checking is only to inform. It says
// whether there is one for each kind; the API server publishes that of a new
// kind a moment after it serves it.
func (s *Schemas) Refresh(
	ctx context.Context, policies []v1alpha1.AllowancePolicy, kinds []kind.Served, others ...schema.GroupVersionKind,
) bool {
	known := map[schema.GroupVersionKind]knownSchema{}

	for _, gvk := range others {
		known[gvk] = s.known[gvk]
	}

	for i := range policies {
		p := &policies[i]

		for _, gvk := range typecheck.Kinds(p, kinds) {
			known[gvk] = s.known[gvk]
		}
	}

	// It is complete before any other goroutine sees it.
	defer func() { s.set(known) }()

	if len(known) == 0 {
		return true
	}

	index, err := s.Discovery.OpenAPIV3().Paths()
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot find schemas to check policies against", "error", err.Error())

		return false
	}

	// What is published of a group version is fetched once for all of its kinds.
	from := &openapiresolver.ClientDiscoveryResolver{
		Discovery: published{DiscoveryInterface: s.Discovery, client: cached.NewClient(s.Discovery.OpenAPIV3())},
	}
	complete := true

	for gvk, have := range known {
		if at, ok := index[openAPIPath(gvk.GroupVersion())]; ok && at.ServerRelativeURL() != have.url {
			known[gvk] = fetch(ctx, from, gvk, at.ServerRelativeURL(), have)
		}

		complete = complete && known[gvk].schema != nil
	}

	return complete
}

// fetch gets the schema of a kind that is published under a URL. That there is
// none is worth remembering; after another failure it is what it was.
func fetch(
	ctx context.Context, from openapiresolver.SchemaResolver, gvk schema.GroupVersionKind, url string, was knownSchema,
) knownSchema {
	got, err := from.ResolveSchema(gvk)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot get the schema of a kind to check policies against", "kind", gvk.String(), "error", err.Error())
	}

	if err != nil && !errors.Is(err, openapiresolver.ErrSchemaNotFound) {
		return was
	}

	return knownSchema{url: url, schema: got}
}

// published is what an API server publishes, of which some is at hand.
type published struct {
	discovery.DiscoveryInterface

	client openapi.Client
}

// OpenAPIV3 returns a client of what is published.
func (p published) OpenAPIV3() openapi.Client { return p.client }

// check returns what checking a policy finds, by what others give.
func (s *Schemas) check(p *v1alpha1.AllowancePolicy, kinds []kind.Served, all typecheck.Grants) []v1alpha1.TypeCheckingWarning {
	return typecheck.Warnings(typecheck.Policy(p, kinds, s.of, all))
}

// checkEnforcement returns what checking an Enforcement finds.
func (s *Schemas) checkEnforcement(in *v1alpha1.Enforcement, served []kind.Served) []v1alpha1.TypeCheckingWarning {
	return typecheck.Warnings(typecheck.Enforcement(in, served, s.of))
}

// openAPIPath is where the API server's index has a group version.
func openAPIPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}

	return "apis/" + gv.String()
}
