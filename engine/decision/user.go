// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/apply"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// builds reports whether the user builds up what a new parent is made of: the parent's
// own controller, and that of the child itself, which completes it. People do not,
// and neither do controllers that have nothing to do with either.
func (f *facts) builds() bool {
	switch {
	case !f.User.Machine():
		return false
	case f.byManager():
		return true
	case f.composes(f.Parent):
		return f.crossplane() || f.completes()
	case resource.IsManaged(f.Parent):
		return f.provider() || f.completes()
	case controlled(f.Parent):
		return kubernetes(f.User) || f.completes()
	default:
		return true // Nobody knows the controller of any other kind.
	}
}

// composes reports whether Crossplane itself is an object's controller.
func (f *facts) composes(u *unstructured.Unstructured) bool {
	return u == f.Parent && f.ParentSettles || resource.IsComposite(u) || resource.IsClaim(u)
}

// completes reports whether the user is the controller of the child itself.
func (f *facts) completes() bool {
	child := f.subject()

	switch {
	case f.composes(child):
		return f.crossplane()
	case resource.IsManaged(child):
		return f.provider()
	default:
		return controlled(child) && kubernetes(f.User)
	}
}

// carriesOut reports whether the user is a controller of Kubernetes, of Crossplane or
// of ours: what it writes to a root carries out what others asked for.
func (f *facts) carriesOut() bool {
	return kubernetes(f.User) || f.provider() || f.byCrossplane() || f.byManager()
}

// crossplane reports whether the user is Crossplane; where it is not known who that
// is, any service account may be.
func (f *facts) crossplane() bool {
	if f.Settings.Crossplane == "" {
		return f.User.ServiceAccount()
	}

	return f.byCrossplane()
}

// controlled reports whether an object is of a kind whose controller is one of
// kube-controller-manager's.
func controlled(u *unstructured.Unstructured) bool {
	return slices.Contains([]string{"", "apps", "autoscaling", "batch", "policy"}, u.GroupVersionKind().Group)
}

// kubernetes reports whether a user is one of Kubernetes' own controllers, which have
// an account each or one for all, or a kubelet, which makes pods of its node.
//
// Source: k8s.io/kubernetes cmd/kube-controller-manager/names, and
// plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go.
func kubernetes(u policy.User) bool {
	if u.Name == "system:kube-controller-manager" || strings.HasPrefix(u.Name, "system:node:") {
		return true
	}

	name, ok := strings.CutPrefix(u.Name, policy.ServiceAccountPrefix+"kube-system:")

	return ok && (strings.HasSuffix(name, "-controller") || name == "horizontal-pod-autoscaler" || name == "persistent-volume-binder")
}

// provider reports whether the user is one: a service account of Crossplane's
// namespace, where it runs them all, that is not its own.
func (f *facts) provider() bool {
	if !f.User.ServiceAccount() || f.byCrossplane() || f.byManager() {
		return false
	}

	i := strings.LastIndexByte(f.Settings.Crossplane, ':')

	return i < 0 || strings.HasPrefix(f.User.Name, f.Settings.Crossplane[:i+1])
}

// deletesForOthers reports whether a user does as Kubernetes tells it: the garbage
// collector and the namespace controller carry out deletions that others asked for.
//
// Source: k8s.io/kubernetes pkg/controlplane/controller and
// cmd/kube-controller-manager/names, under --use-service-account-credentials.
func deletesForOthers(u policy.User) bool {
	return u.Name == "system:serviceaccount:kube-system:generic-garbage-collector" || u.Name == namespaceController
}

// applies reports whether Crossplane applies what a pipeline wishes. Its record of
// that is true: nobody else may write it.
func (f *facts) applies() bool {
	return f.byCrossplane() && f.User.Name != "" && strings.HasPrefix(f.FieldManager, apply.ComposedManager)
}

// bookkeeping reports whether Crossplane writes an object of its own kinds, in which it
// keeps books of what belongs together. Other kinds may have fields of the same
// names. What a Composition wishes of them is no bookkeeping: a composition function
// is asked about nothing else.
func (f *facts) bookkeeping() bool {
	return f.byCrossplane() && f.Action == "" && crossplanes(cmp.Or(f.Old, f.New))
}

// crossplanes reports whether an object is an XR, a Claim or a managed resource. A new
// XR or Claim shows it by its finalizer, before anything else is written to it.
func crossplanes(u *unstructured.Unstructured) bool {
	return resource.IsComposite(u) || resource.IsClaim(u) || resource.IsManaged(u) ||
		resource.Composing(u) || slices.Contains(u.GetFinalizers(), finalizerClaim)
}

// finalizerClaim is Crossplane's own on a Claim.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/claim/reconciler.go.
const finalizerClaim = "finalizer.apiextensions.crossplane.io"
