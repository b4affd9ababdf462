// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keyParams starts the keys of the parameters the function asks for.
const keyParams = "kausality.io/params/"

var (
	errUnreadable  = errors.New("they are not known to be readable by Crossplane, see the condition ParametersReadable of the policy")
	errOther       = errors.New("under the name that they are required by, Crossplane sent something else")
	errNoNamespace = errors.New("this Crossplane does not say that it sends functions what is in a namespace, which takes 2.2 or newer")
)

// params are the parameters of policies, of those kinds that Crossplane may read: one
// that it may not, or that nobody serves, would have it fail for all that the XR
// composes.
type params struct {
	sent map[string]*fnv1.Resources
	// scopes are those of the kinds that Crossplane may read.
	scopes map[schema.GroupVersionKind]v1alpha1.ParamScope
	// namespaces is true where Crossplane says what it can do, and so sends what is in one.
	namespaces bool
	// read are those that were looked for, by key.
	read map[string]*fnv1.ResourceSelector
	// awaited is true where some of these are still to be sent.
	awaited bool
}

// readParams reads what policies say of their parameters, and what Crossplane sent of
// them.
func readParams(req *fnv1.RunFunctionRequest, list []v1alpha1.AllowancePolicy) *params {
	out := &params{
		sent: sent(req), scopes: map[schema.GroupVersionKind]v1alpha1.ParamScope{}, read: map[string]*fnv1.ResourceSelector{},
		namespaces: request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES),
	}

	for i := range list {
		p := &list[i]

		if gvk, ok := policy.ParamKindOf(&p.Spec); ok && policy.ParametersReadable(p) {
			out.scopes[gvk] = p.Status.ParamScope
		}
	}

	return out
}

// find finds parameters, see [expression.Params].
func (p *params) find(q expression.ParamQuery) (expression.ParamList, error) {
	q, err := p.scoped(q)
	if err != nil {
		return expression.ParamList{}, err
	}

	list, err := p.listed(q)

	return expression.ParamList{Objects: list, ClusterScoped: p.scopes[q.Kind] == v1alpha1.ParamScopeCluster}, err
}

// listed is what Crossplane sent for a query, or that it is still to send it.
func (p *params) listed(q expression.ParamQuery) ([]map[string]any, error) {
	key := keyOfParams(q)
	p.read[key] = selectorOf(q)

	res, ok := p.sent[key]
	if !ok {
		p.awaited = true

		return nil, policy.ErrParamsAwaited
	}

	var out []map[string]any

	for _, item := range res.GetItems() {
		u := decode(item.GetResource())

		// A requirement of the pipeline's step may have the same name, and ask for anything.
		if u.GroupVersionKind() != q.Kind || q.Selector == nil && u.GetName() != q.Name {
			return nil, errOther
		}

		if q.Selector == nil || q.Selector.Matches(labels.Set(u.GetLabels())) {
			out = append(out, u.Object)
		}
	}

	slices.SortFunc(out, func(a, b map[string]any) int {
		return strings.Compare(resource.String(a, "metadata", "name"), resource.String(b, "metadata", "name"))
	})

	return out, nil
}

// scoped is a query as Crossplane can be asked it.
func (p *params) scoped(q expression.ParamQuery) (expression.ParamQuery, error) {
	switch scope, ok := p.scopes[q.Kind]; {
	case !ok:
		return q, errUnreadable
	case scope != v1alpha1.ParamScopeNamespaced:
		q.Namespace = ""
	case q.Namespace == "":
		return q, policy.ErrParamNamespace
	case !p.namespaces:
		return q, errNoNamespace
	}

	return q, nil
}

// require asks for the parameters that the decisions read, and for no others: Crossplane
// remembers what was required last, and would wait for a kind that is gone meanwhile.
func (p *params) require(rsp *fnv1.RunFunctionResponse) {
	if len(p.read) == 0 {
		return
	}

	if p.namespaces {
		maps.Copy(rsp.GetRequirements().GetResources(), p.read)
	} else {
		maps.Copy(rsp.GetRequirements().GetExtraResources(), p.read) //nolint:staticcheck // As in state.require.
	}
}

// keyOfParams is the key of a query.
func keyOfParams(q expression.ParamQuery) string {
	apiVersion, kind := q.Kind.ToAPIVersionAndKind()
	out := keyParams + apiVersion + "/" + kind + "/" + q.Namespace

	if q.Selector != nil {
		return fmt.Sprintf("%s?%s", out, q.Selector)
	}

	return out + "/" + q.Name
}

// selectorOf is a query as Crossplane knows one. It selects by single labels only: what
// else a selector asks for is judged here.
func selectorOf(q expression.ParamQuery) *fnv1.ResourceSelector {
	out := &fnv1.ResourceSelector{}
	out.ApiVersion, out.Kind = q.Kind.ToAPIVersionAndKind()

	if q.Namespace != "" {
		out.Namespace = &q.Namespace
	}

	if q.Selector == nil {
		out.Match = &fnv1.ResourceSelector_MatchName{MatchName: q.Name}

		return out
	}

	match := map[string]string{}

	reqs, _ := q.Selector.Requirements()
	for _, r := range reqs {
		if values := r.ValuesUnsorted(); len(values) == 1 && (r.Operator() == "in" || r.Operator() == "=" || r.Operator() == "==") {
			match[r.Key()] = values[0]
		}
	}

	out.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: match}}

	return out
}
