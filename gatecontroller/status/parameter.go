// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
)

// readEvery is how often it is found out anew which kinds of parameters can be read:
// nothing tells of a role that somebody gives, or takes away.
const readEvery = 10 * time.Second

// Parameters finds out whether the parameters of policies can be read: by us, who serve
// the webhook, and by Crossplane, which gives them to functions. It is safe for concurrent
// use.
type Parameters struct {
	// Client asks the API server who may do what.
	Client client.Client
	// Discovery remembers nothing: a kind may be gone.
	Discovery discovery.ServerResourcesInterface
	// Access reports what we may do.
	Access *access.Access
	// Crossplane is its user.
	Crossplane string

	mu sync.Mutex
	// known is what was found last of the kinds that policies name.
	known map[schema.GroupVersionKind]readable
}

// readable is whether objects of a kind can be read.
type readable struct {
	reason, message string
	scope           v1alpha1.ParamScope
}

// of is what was found last of a kind; found now if nothing was. The error is of an API
// server that does not answer.
func (f *Parameters) of(ctx context.Context, gvk schema.GroupVersionKind) (readable, error) {
	f.mu.Lock()
	out, ok := f.known[gvk]
	f.mu.Unlock()

	if ok {
		return out, nil
	}

	out, err := f.find(ctx, gvk)
	if err != nil {
		return readable{}, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.known == nil {
		f.known = map[schema.GroupVersionKind]readable{}
	}

	f.known[gvk] = out

	return out, nil
}

// refresh finds out anew about kinds, and forgets all others. It returns those that are
// not as they were. Of one about which the API server does not answer, what was found
// last counts.
func (f *Parameters) refresh(ctx context.Context, kinds []schema.GroupVersionKind) []schema.GroupVersionKind {
	f.mu.Lock()
	before := maps.Clone(f.known)
	f.mu.Unlock()

	var changed []schema.GroupVersionKind

	next := make(map[schema.GroupVersionKind]readable, len(kinds))

	for _, gvk := range kinds {
		was, ok := before[gvk]

		now, err := f.find(ctx, gvk)

		switch {
		case err == nil:
			next[gvk] = now
		case ok:
			next[gvk] = was

			log.FromContext(ctx).Info("Cannot tell whether parameters can be read", "kind", gvk.String(), "error", err.Error())
		}

		if ok && next[gvk] != was {
			changed = append(changed, gvk)
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	f.known = next

	return changed
}

// served are the kinds that the API server was found to serve.
func (f *Parameters) served() []schema.GroupVersionKind {
	f.mu.Lock()
	defer f.mu.Unlock()

	var out []schema.GroupVersionKind

	for gvk, found := range f.known {
		if found.reason != v1alpha1.ReasonKindUnknown {
			out = append(out, gvk)
		}
	}

	return out
}

// find asks the API server about a kind.
func (f *Parameters) find(ctx context.Context, gvk schema.GroupVersionKind) (readable, error) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()

	list, err := f.Discovery.ServerResourcesForGroupVersion(apiVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return readable{}, fmt.Errorf("cannot tell whether %s is served: %w", gvk, err)
	}

	var served *metav1.APIResource

	if list != nil {
		if i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Kind == kind && !strings.Contains(r.Name, "/")
		}); i >= 0 {
			served = &list.APIResources[i]
		}
	}

	if served == nil {
		return readable{reason: v1alpha1.ReasonKindUnknown, message: "the API server serves no kind " + kind + " of " + apiVersion}, nil
	}

	out := readable{reason: v1alpha1.ReasonReadable, scope: v1alpha1.ParamScopeCluster}
	if served.Namespaced {
		out.scope = v1alpha1.ParamScopeNamespaced
	}

	resource := schema.GroupResource{Group: gvk.Group, Resource: served.Name}
	out.message = "Kausality and Crossplane may read " + resource.String()
	need := right.Read(resource)

	// Crossplane would wait for what it cannot watch, in each reconciliation of an XR.
	if verbs := right.Unsupported(served.Verbs); verbs != "" {
		out.reason = v1alpha1.ReasonKindUnsupported
		out.message = fmt.Sprintf("the API server does not support %s of %s, as Crossplane needs: "+
			"objects of this kind hold no parameters", verbs, resource)

		return out, nil
	}

	if missing := f.Access.Missing(ctx, []right.Need{need}); len(missing) > 0 {
		out.reason, out.message = v1alpha1.ReasonRightsMissing, right.Message(missing, message.Most)

		return out, nil
	}

	for _, r := range need.Rights() {
		may, err := f.crossplaneMay(ctx, r)
		if err != nil {
			return readable{}, err
		}

		if !may {
			out.reason = v1alpha1.ReasonRightsMissing
			out.message = message.Then(fmt.Sprintf("Crossplane (%s) may not %s %s", f.Crossplane, r.Verb, resource), right.Remedy)

			return out, nil
		}
	}

	return out, nil
}

// crossplaneMay reports whether Crossplane may do something in all namespaces.
func (f *Parameters) crossplaneMay(ctx context.Context, r right.Right) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: f.Crossplane, Groups: policy.ServiceAccountGroups(f.Crossplane), ResourceAttributes: access.Attributes(r),
	}}
	if err := f.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot ask whether %s may %s %s: %w", f.Crossplane, r.Verb, r.Resource, err)
	}

	return review.Status.Allowed, nil
}

// paramKinds are the kinds of the parameters of policies.
func paramKinds(policies []v1alpha1.AllowancePolicy) []schema.GroupVersionKind {
	out := map[schema.GroupVersionKind]bool{}

	for i := range policies {
		if gvk, ok := policy.ParamKindOf(&policies[i].Spec); ok {
			out[gvk] = true
		}
	}

	return slices.Collect(maps.Keys(out))
}

// recheck has policies reconciled whose parameters can be read now, or no longer, while a
// context lasts.
func (r Policies) recheck(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		by := r.Reporter.applied.Load()
		if by == nil {
			continue
		}

		for _, name := range r.rechecked(ctx, by.Applied.Want.Policies) {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
}

// rechecked finds out anew about the parameters of policies, and returns the names of those
// for which something else was found than last.
func (r Policies) rechecked(ctx context.Context, policies []v1alpha1.AllowancePolicy) []string {
	changed := r.Reporter.Parameters.refresh(ctx, paramKinds(policies))
	if len(changed) == 0 {
		return nil
	}

	var out []string

	for i := range policies {
		if gvk, ok := policy.ParamKindOf(&policies[i].Spec); ok && slices.Contains(changed, gvk) {
			out = append(out, policies[i].GetName())
		}
	}

	return out
}

// reportParams has the status of a policy say whether its parameters can be read.
func (s *Reporter) reportParams(ctx context.Context, out *v1alpha1.AllowancePolicy) error {
	out.Status.ParamScope = ""

	gvk, ok := policy.ParamKindOf(&out.Spec)
	if !ok {
		apimeta.RemoveStatusCondition(&out.Status.Conditions, v1alpha1.ConditionParametersReadable)

		return nil
	}

	found, err := s.Parameters.of(ctx, gvk)
	if err != nil {
		return err
	}

	cond := metav1.Condition{
		Type: v1alpha1.ConditionParametersReadable, Status: metav1.ConditionFalse, ObservedGeneration: out.GetGeneration(),
		Reason: found.reason, Message: message.Cut(found.message, message.Most),
	}
	if found.reason == v1alpha1.ReasonReadable {
		cond.Status = metav1.ConditionTrue
	}

	out.Status.ParamScope = found.scope
	apimeta.SetStatusCondition(&out.Status.Conditions, cond)

	return nil
}
