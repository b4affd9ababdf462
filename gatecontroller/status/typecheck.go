// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	openapiresolver "k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
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

		for _, gvk := range checkedKinds(p, kinds) {
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

// check returns what is wrong with a policy that does not prevent it from being
// used: with its paths and expressions, for each kind that it names, with its
// verbs, and that nobody can make use of it by what others give.
func (s *Schemas) check(p *v1alpha1.AllowancePolicy, kinds []kind.Served, all granted) []v1alpha1.TypeCheckingWarning {
	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		return nil
	}

	var (
		out      []v1alpha1.TypeCheckingWarning
		params   *spec.Schema
		composed bool
	)

	if gvk, ok := compiled.ParamKind(); ok {
		params = s.of(gvk)
	}

	for _, gvk := range checkedKinds(p, kinds) {
		parents := all.parents(gvk.GroupKind(), kinds)
		composed = composed || policy.IsAbout(&p.Spec.Match, gvk.GroupKind()) && slices.ContainsFunc(parents, composite)

		out = append(out, ofKind(gvk, compiled.CheckBelow(gvk.GroupKind(), s.of(gvk), params, s.ofParent(parents)))...)

		if slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && k.GVK == gvk }) {
			out = append(out, ofKind(gvk, compiled.CheckCloseWhen(s.of(gvk)))...)
		}
	}

	managed := slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && policy.IsAbout(&p.Spec.Match, k.GVK.GroupKind()) })

	if composed {
		out = append(out, compiled.CheckComposed()...)
	}

	given := all.besides(p)

	return slices.Concat(out, policy.CheckExternal(p.Spec.Allow, managed), compiled.CheckReach(given), compiled.CheckStart(given))
}

func composite(k kind.Served) bool { return k.Composite }

// ofParent is the schema of the one kind that all parents are of; nil where they may be of several.
func (s *Schemas) ofParent(parents []kind.Served) *spec.Schema {
	if len(parents) != 1 {
		return nil
	}

	return s.of(parents[0].GVK)
}

// ofKind says of some warnings which kind they are about.
func ofKind(gvk schema.GroupVersionKind, list []v1alpha1.TypeCheckingWarning) []v1alpha1.TypeCheckingWarning {
	for i := range list {
		list[i].Warning = fmt.Sprintf("%s, kind %s: %s", gvk.GroupVersion(), gvk.Kind, list[i].Warning)
	}

	return list
}

// Limits of checking one Enforcement: the rules of one may name all of many groups.
const (
	// maxEnforcedKinds is against how many kinds its conditions are checked.
	//
	// Source: k8s.io/apiserver pkg/admission/plugin/policy/validating/typechecking.go.
	maxEnforcedKinds = 10
	// maxEnforcedWarnings is how many warnings its status holds.
	maxEnforcedWarnings = 256
)

// enforcedKinds are the served kinds against which the conditions of an Enforcement
// are checked: those that its rules name by resource or group, and not whatever
// there is.
func enforcedKinds(e *enforcement.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	if len(e.Spec().MatchConditions) == 0 {
		return nil
	}

	var out []schema.GroupVersionKind

	for _, k := range served {
		if len(out) < maxEnforcedKinds && e.Names(k.GroupResource()) && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}

// AllEnforcedKinds are those of some Enforcements.
func AllEnforcedKinds(list []v1alpha1.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(list))

	for i := range list {
		e, _ := enforcement.Compile(&list[i]) // Of a broken one what compiles is checked.
		out = append(out, enforcedKinds(e, served)...)
	}

	return out
}

// checkEnforcement returns what is wrong with the conditions of an Enforcement, for
// each kind that its rules name.
func (s *Schemas) checkEnforcement(in *v1alpha1.Enforcement, served []kind.Served) []v1alpha1.TypeCheckingWarning {
	e, _ := enforcement.Compile(in) // Of a broken one what compiles is checked.

	kinds := enforcedKinds(e, served)
	perKind := make([][]v1alpha1.TypeCheckingWarning, len(kinds))

	for i, gvk := range kinds {
		perKind[i] = ofKind(gvk, e.Check(s.of(gvk)))
	}

	out := slices.Concat(perKind...)

	return out[:min(len(out), maxEnforcedWarnings)]
}

// checkedKinds are the served kinds that a policy names, each once.
func checkedKinds(p *v1alpha1.AllowancePolicy, kinds []kind.Served) []schema.GroupVersionKind {
	names := kind.OfPolicy(p.Spec)

	var out []schema.GroupVersionKind

	for _, k := range kinds {
		named := slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(k.GVK) })
		if named && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}

// granted are the permissions that policies and windows give about a kind, by
// the name of the kind.
type granted map[string][]grant

// grant is a permission of a policy; of a window where no policy is named.
type grant struct {
	policy     string
	permission v1alpha1.Permission
	// of are the kinds whose changes give it; none of a window.
	of []schema.GroupKind
}

func grants(want admission.Config) granted {
	out := granted{}

	add := func(policy string, of []schema.GroupKind, allow []v1alpha1.Permission) {
		for _, perm := range allow {
			out[perm.Kind] = append(out[perm.Kind], grant{policy: policy, permission: perm, of: of})
		}
	}

	for _, p := range want.InForce().Policies {
		add(p.GetName(), policy.KindsOf(&p.Spec.Match), p.Spec.Allow)
	}

	for i := range want.Windows {
		add("", nil, want.Windows[i].Spec.Allow)
	}

	return out
}

// besides are those about a policy's kind that the policy does not give itself.
func (g granted) besides(p *v1alpha1.AllowancePolicy) []v1alpha1.Permission {
	var out []v1alpha1.Permission

	for _, gk := range policy.KindsOf(&p.Spec.Match) {
		for _, one := range g[gk.Kind] {
			if one.policy != p.GetName() {
				out = append(out, one.permission)
			}
		}
	}

	return out
}

// parents are the served kinds of which policies allow changes of children of a kind.
func (g granted) parents(gk schema.GroupKind, served []kind.Served) []kind.Served {
	var out []kind.Served

	for _, one := range g[gk.Kind] {
		if !policy.OfChild(one.permission, gk) {
			continue
		}

		for _, k := range served {
			named := slices.ContainsFunc(one.of, func(of schema.GroupKind) bool { return kind.Name(of).Matches(k.GVK) })
			if named && !slices.ContainsFunc(out, func(o kind.Served) bool { return o.GVK == k.GVK }) {
				out = append(out, k)
			}
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
