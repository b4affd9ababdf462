// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// builds says whether the user builds up what a new parent is made of: the parent's
// own controller, and that of the child itself, which completes it. People do not,
// and neither do controllers that have nothing to do with either.
func (d *decider) builds() bool {
	switch {
	case !d.User.Machine():
		return false
	case d.User.Name == d.Settings.Manager:
		return true
	case d.composes(d.Parent):
		return d.crossplane() || d.completes()
	case resource.IsManaged(d.Parent):
		return d.provider() || d.completes()
	case controlled(d.Parent):
		return kubernetes(d.User) || d.completes()
	default:
		return true // Nobody knows the controller of any other kind.
	}
}

// composes says whether Crossplane itself is an object's controller.
func (d *decider) composes(u *unstructured.Unstructured) bool {
	return u == d.Parent && d.ParentSettles || resource.IsComposite(u) || resource.IsClaim(u)
}

// completes says whether the user is the controller of the child itself.
func (d *decider) completes() bool {
	child := d.subject()

	switch {
	case d.composes(child):
		return d.crossplane()
	case resource.IsManaged(child):
		return d.provider()
	default:
		return controlled(child) && kubernetes(d.User)
	}
}

// carriesOut says whether the user is a controller of Kubernetes, of Crossplane or
// of ours: what it writes to a root carries out what others asked for.
func (d *decider) carriesOut() bool {
	return kubernetes(d.User) || d.provider() || d.User.Name == d.Settings.Crossplane || d.User.Name == d.Settings.Manager
}

// crossplane says whether the user is Crossplane; where it is not known who that
// is, any service account may be.
func (d *decider) crossplane() bool {
	if d.Settings.Crossplane == "" {
		return d.User.ServiceAccount()
	}

	return d.User.Name == d.Settings.Crossplane
}

// controlled says whether an object is of a kind whose controller is one of
// kube-controller-manager's.
func controlled(u *unstructured.Unstructured) bool {
	return slices.Contains([]string{"", "apps", "autoscaling", "batch", "policy"}, u.GroupVersionKind().Group)
}

// kubernetes says whether a user is one of Kubernetes' own controllers, which have
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
