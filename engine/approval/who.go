// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Asker asks who may decide about changes. It is for one decision: each question is asked
// once, and an error ends it.
type Asker struct {
	// Authorizer is the cluster's, bound to the context of a request.
	Authorizer authorizer.UnconditionalAuthorizer
	// Resource finds what a kind is called in requests.
	Resource func(schema.GroupVersionKind) (schema.GroupResource, error)
	// Approvers are the service accounts that may decide, as namespace:name.
	Approvers []string

	answers map[Right]bool
}

// Right is what it takes to decide about a change: a verb on the subresource kausality of
// the object that keeps its value.
type Right struct {
	// Verb is approve, approve-destructive or break-glass.
	Verb string
	// Resource of the object.
	Resource schema.GroupResource
	// Namespace in which it is needed; empty for a ClusterRoleBinding alone.
	Namespace string
	// Name of the object; empty for one that has none yet.
	Name string
}

var errNoAuthorizer = errors.New("the cluster's authorizer cannot be asked here")

// MayDecide reports whether an approver may decide about a change: both to approve and to
// reject take the same right, and to break the glass takes another. Reason says what is missing, and how it is given. It does not
// ask who made the change, see [SameEyes]. RootNamespace is that of the object that people
// edit, empty for a cluster-scoped one. An error means that it could not be asked: nobody
// may then.
func (a *Asker) MayDecide(
	approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange, rootNamespace string,
) (ok bool, reason string, err error) {
	if reason := a.machine(approver.Username, decision); reason != "" {
		return false, reason, nil
	}

	rights, err := a.rights(decision, entry, rootNamespace)
	if err != nil {
		return false, "", err
	}

	for _, right := range rights {
		if ok, err = a.has(approver, right); err != nil {
			return false, "", err
		}

		if !ok {
			return false, right.missing(approver.Username, entry), nil
		}
	}

	return true, "", nil
}

// machine says why a user who is no person may not decide; empty for one who is, and for a
// service account that may.
func (a *Asker) machine(name string, decision v1alpha1.ApprovalDecision) string {
	u := policy.User{Name: name}
	if !u.Machine() {
		return ""
	}

	namespace, account, err := serviceaccount.SplitUsername(name)
	if err != nil {
		return fmt.Sprintf("user %q is a component of Kubernetes: only people, and service accounts that are named, decide about changes", name)
	}

	if decision == v1alpha1.DecisionBreakGlass {
		return fmt.Sprintf("service account %q may not let changes through by decision %s: only people do; approve it with decision %s instead",
			namespace+"/"+account, decision, v1alpha1.DecisionApprove)
	}

	named := namespace + ":" + account
	if slices.Contains(a.Approvers, named) {
		return ""
	}

	return fmt.Sprintf("service account %q may not decide about changes: have a person do it, or name the account to the manager with "+
		"--approvers=%s (approvers of the Helm chart), and give it the right", namespace+"/"+account, named)
}

// rights are those that it takes to decide about a change: where it destroys something, that of
// breaking the glass does not stand for that of destroying.
func (a *Asker) rights(decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange, rootNamespace string) ([]Right, error) {
	gvk := schema.FromAPIVersionAndKind(entry.Ref.APIVersion, entry.Ref.Kind)

	resource, err := a.Resource(gvk)
	if err != nil {
		return nil, fmt.Errorf("cannot find the resource of kind %q of %s: %w", gvk.Kind, entry.Ref.APIVersion, err)
	}

	out := Right{Verb: v1alpha1.VerbApprove, Resource: resource, Namespace: entry.Ref.Namespace, Name: entry.Ref.Name}
	if entry.Destroys {
		out.Verb = v1alpha1.VerbApproveDestructive
	}

	if out.Namespace == "" {
		out.Namespace = rootNamespace
	}

	if decision != v1alpha1.DecisionBreakGlass {
		return []Right{out}, nil
	}

	breaking := out
	breaking.Verb = v1alpha1.VerbBreakGlass

	if !entry.Destroys {
		return []Right{breaking}, nil
	}

	return []Right{breaking, out}, nil
}

// has asks the cluster's authorizer, once for each right. Whoever gives it has bound it to
// the context of the request.
func (a *Asker) has(approver v1alpha1.Approver, r Right) (bool, error) {
	if ok, known := a.answers[r]; known {
		return ok, nil
	}

	if a.Authorizer == nil {
		return false, errNoAuthorizer
	}

	got, _, err := a.Authorizer.Authorize(context.Background(), authorizer.AttributesRecord{
		User: userInfo(approver), Verb: r.Verb, Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
		APIGroup: r.Resource.Group, APIVersion: "*", Resource: r.Resource.Resource, Subresource: v1alpha1.SubresourceKausality,
	})
	if err != nil {
		return false, fmt.Errorf("the cluster's authorizer cannot be asked for %s of %s/%s: %w",
			r.Verb, r.Resource, v1alpha1.SubresourceKausality, err)
	}

	if a.answers == nil {
		a.answers = map[Right]bool{}
	}

	ok := got == authorizer.DecisionAllow
	a.answers[r] = ok

	return ok, nil
}

// userInfo is an approver as authorizers know one.
func userInfo(a v1alpha1.Approver) user.Info {
	out := &user.DefaultInfo{Name: a.Username, UID: a.UID, Groups: a.Groups}

	for key, values := range a.Extra {
		if out.Extra == nil {
			out.Extra = map[string][]string{}
		}

		out.Extra[key] = values
	}

	return out
}

// missing says which right is, and the role that gives it once it is bound.
func (r Right) missing(name string, entry v1alpha1.HeldChange) string {
	where, role := "", "clusterrole"
	if r.Namespace != "" {
		where, role = " -n "+r.Namespace, "role"
	}

	return fmt.Sprintf("user %[1]q may not %[7]s %[3]s. Bind a role: "+
		"kubectl create %[5]s kausality-%[2]s --verb=%[2]s --resource=%[6]s/%[8]s%[4]s",
		name, r.Verb, Subject(entry), where, role, r.Resource, r.act(), v1alpha1.SubresourceKausality)
}

// act is what somebody may not do, before the name of an object.
func (r Right) act() string {
	if r.Verb == v1alpha1.VerbBreakGlass {
		return "let through alone, by " + r.Verb + ", changes of"
	}

	return r.Verb + " changes of"
}

// Subject is what a change is of, for a person, such as Instance "db" in namespace "team-a".
func Subject(entry v1alpha1.HeldChange) string {
	name := entry.Ref.Name
	if name == "" {
		name = entry.ComposedResource
	}

	out := fmt.Sprintf("%s %q", entry.Ref.Kind, name)
	if entry.Ref.Namespace != "" {
		out += fmt.Sprintf(" in namespace %q", entry.Ref.Namespace)
	}

	return out
}

// SameEyes says why a user may not approve what somebody asks for: because they ask for it
// themselves. It is empty for anybody else. Requesters are [v1alpha1.PendingChangeStatus.Requesters].
func SameEyes(name string, requesters []string) string {
	if !slices.Contains(requesters, name) {
		return ""
	}

	return fmt.Sprintf("user %q requested the change and cannot approve it. Ask someone else; "+
		"with GitOps, change and approval need different identities, such as a person for the approval, "+
		"or another service account by impersonation", name)
}
