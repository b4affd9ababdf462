// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// builds reports whether the user builds up what a new parent is made of: the parent's
// controller, and that of the child itself, which completes it. People do not,
// and neither do controllers that have nothing to do with either.
func (l *lineage) builds() bool {
	switch {
	case !l.User.Machine():
		return false
	case l.byManager():
		return true
	case l.composes(l.Parent):
		return l.crossplane() || l.completes()
	case resource.IsManaged(l.Parent):
		return l.provider() || l.completes()
	case controlled(l.Parent):
		return kubernetes(l.User) || l.completes()
	default:
		return true // Nobody knows the controller of any other kind.
	}
}

// composes reports whether Crossplane itself is an object's controller.
func (l *lineage) composes(u *unstructured.Unstructured) bool {
	return u == l.Parent && l.ParentSettles || resource.IsComposite(u) || resource.IsClaim(u)
}

// completes reports whether the user is the controller of the child itself.
func (l *lineage) completes() bool {
	child := l.target()

	switch {
	case l.composes(child):
		return l.crossplane()
	case resource.IsManaged(child):
		return l.provider()
	default:
		return controlled(child) && kubernetes(l.User)
	}
}

// carriesOut reports whether the user is a controller of Kubernetes, of Crossplane or
// of ours: what it writes to a root carries out what others asked for.
func (c *caller) carriesOut() bool {
	return kubernetes(c.User) || c.provider() || c.byCrossplane() || c.byManager()
}

// crossplane reports whether the user is Crossplane; where it is not known who that
// is, any service account may be.
func (c *caller) crossplane() bool {
	if c.Settings.Crossplane == "" {
		return c.User.ServiceAccount()
	}

	return c.byCrossplane()
}

// controlled reports whether an object is of a kind whose controller is one of
// kube-controller-manager's.
func controlled(u *unstructured.Unstructured) bool {
	return slices.Contains([]string{"", "apps", "autoscaling", "batch", "policy"}, u.GroupVersionKind().Group)
}

// kubernetes reports whether a user is one of Kubernetes' controllers, which have
// an account each or one for all, or a kubelet, which makes pods of its node.
//
// Source: k8s.io/kubernetes cmd/kube-controller-manager/names, and
// plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go.
func kubernetes(u policy.User) bool {
	if u.Name == "system:kube-controller-manager" || strings.HasPrefix(u.Name, "system:node:") {
		return true
	}

	name, ok := strings.CutPrefix(u.Name, serviceaccount.MakeUsername(metav1.NamespaceSystem, ""))

	return ok && (strings.HasSuffix(name, "-controller") || name == "horizontal-pod-autoscaler" || name == "persistent-volume-binder")
}

// ofKubernetes reports whether a user is a part of Kubernetes, or works beside its parts in
// kube-system: what such a one does carries out what others asked for.
func ofKubernetes(u policy.User) bool {
	if u.ServiceAccount() {
		return strings.HasPrefix(u.Name, serviceaccount.MakeUsername(metav1.NamespaceSystem, ""))
	}

	return u.Machine() && u.Name != user.Anonymous
}

// provider reports whether the user is one: a service account of Crossplane's
// namespace, where it runs them all, that is not Crossplane's.
func (c *caller) provider() bool {
	if !c.User.ServiceAccount() || c.byCrossplane() || c.byManager() {
		return false
	}

	i := strings.LastIndexByte(c.Settings.Crossplane, ':')

	return i < 0 || strings.HasPrefix(c.User.Name, c.Settings.Crossplane[:i+1])
}

// deletesForOthers reports whether a user acts on behalf of others: the garbage
// collector and the namespace controller carry out deletions that others asked for.
func deletesForOthers(u policy.User) bool {
	return u.Name == policy.GarbageCollector || u.Name == policy.NamespaceController
}

// applies reports whether Crossplane applies what a pipeline wishes. Its record of
// that is true: nobody else may write it.
func (c *caller) applies() bool {
	return c.byCrossplane() && c.User.Name != "" && strings.HasPrefix(c.FieldManager, managedfields.ComposedManager)
}

// bookkeeping reports whether Crossplane writes an object of its kinds, in which it
// records what belongs together. Other kinds may have fields of the same
// names. What a Composition wishes of them is no bookkeeping: a composition function
// is asked about nothing else.
func (l *lineage) bookkeeping() bool {
	return l.byCrossplane() && l.Action == "" && crossplanes(cmp.Or(l.Old, l.New))
}

// crossplanes reports whether an object is an XR, a Claim or a managed resource. A new
// XR or Claim shows it by its finalizer, before anything else is written to it.
func crossplanes(u *unstructured.Unstructured) bool {
	return resource.IsComposite(u) || resource.IsClaim(u) || resource.IsManaged(u) ||
		resource.Composing(u) || slices.Contains(u.GetFinalizers(), finalizerClaim)
}

// finalizerClaim is that of Crossplane on a Claim.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/claim/reconciler.go.
const finalizerClaim = "finalizer.apiextensions.crossplane.io"
