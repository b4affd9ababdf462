// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Actor is who makes a request, by what its user does for others.
type Actor string

// Actors.
const (
	// ActorPerson is a person, or another program that people use.
	ActorPerson Actor = "Person"
	// ActorMachine is a controller of which nothing else is known.
	ActorMachine Actor = "Machine"
	// ActorCrossplane is Crossplane itself.
	ActorCrossplane Actor = "Crossplane"
	// ActorProvider is a provider: a service account of Crossplane's namespace, where it runs them all, that is not
	// Crossplane's. Where it is not known who Crossplane is, any service account may be one.
	ActorProvider Actor = "Provider"
	// ActorManager is our manager.
	ActorManager Actor = "Manager"
	// ActorCollector is the garbage collector or the namespace controller. They carry out deletions that others asked for.
	ActorCollector Actor = "Collector"
)

// Writer is who makes a request.
type Writer struct {
	// User as the API server knows them, and Actor that they are.
	User  policy.User
	Actor Actor
	// FieldManager that they name; empty where they name none.
	FieldManager string
	// AnyCrossplane is true where it is not known who Crossplane is: then any service account may be.
	AnyCrossplane bool
}

// WriterOf is who makes a request, by the settings of the installation.
func WriterOf(u policy.User, fieldManager string, settings Settings) Writer {
	return Writer{User: u, FieldManager: fieldManager, Actor: actorOf(u, settings), AnyCrossplane: settings.Crossplane == ""}
}

func actorOf(u policy.User, settings Settings) Actor {
	switch {
	case u.Name == settings.Crossplane:
		return ActorCrossplane
	case u.Name == settings.Manager:
		return ActorManager
	case DeletesForOthers(u):
		return ActorCollector
	case u.ServiceAccount() && strings.HasPrefix(u.Name, namespaceOf(settings.Crossplane)):
		return ActorProvider
	case u.Machine():
		return ActorMachine
	default:
		return ActorPerson
	}
}

// namespaceOf is what the names of all service accounts of the namespace of one begin with; empty where there is none.
func namespaceOf(account string) string { return account[:strings.LastIndexByte(account, ':')+1] }

// IsCrossplane reports whether Crossplane itself asks, as far as it is known who that is.
func (by Writer) IsCrossplane() bool { return by.Actor == ActorCrossplane }

// IsManager reports whether our manager asks.
func (by Writer) IsManager() bool { return by.Actor == ActorManager }

// IsProvider reports whether a provider asks.
func (by Writer) IsProvider() bool { return by.Actor == ActorProvider }

// Builds reports whether the user builds up what a new parent is made of: the parent's
// controller, and that of the child itself, which completes it. People do not,
// and neither do controllers that have nothing to do with either.
func Builds(o Objects, by Writer, how Manner) bool {
	switch {
	case !by.User.Machine():
		return false
	case by.IsManager():
		return true
	case Composes(o, how, o.Parent):
		return by.mayBeCrossplane() || completes(o, by, how)
	case resource.IsManaged(o.Parent):
		return by.IsProvider() || completes(o, by, how)
	case controlled(o.Parent):
		return kubernetes(by.User) || completes(o, by, how)
	default:
		return true // Nobody knows the controller of any other kind.
	}
}

// Composes reports whether Crossplane itself is an object's controller.
func Composes(o Objects, how Manner, u *unstructured.Unstructured) bool {
	return u == o.Parent && how.Settles || resource.IsComposite(u) || resource.IsClaim(u)
}

// completes reports whether the user is the controller of the child itself.
func completes(o Objects, by Writer, how Manner) bool {
	child := o.Target()

	switch {
	case Composes(o, how, child):
		return by.mayBeCrossplane()
	case resource.IsManaged(child):
		return by.IsProvider()
	default:
		return controlled(child) && kubernetes(by.User)
	}
}

// CarriesOut reports whether the user is a controller of Kubernetes, of Crossplane or
// of ours: what it writes to a root carries out what others asked for.
func (by Writer) CarriesOut() bool {
	return kubernetes(by.User) || by.IsProvider() || by.IsCrossplane() || by.IsManager()
}

// mayBeCrossplane reports whether the user is Crossplane; where it is not known who that
// is, any service account may be.
func (by Writer) mayBeCrossplane() bool {
	if by.AnyCrossplane {
		return by.User.ServiceAccount()
	}

	return by.IsCrossplane()
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

// DeletesForOthers reports whether a user acts on behalf of others: the garbage
// collector and the namespace controller carry out deletions that others asked for.
func DeletesForOthers(u policy.User) bool {
	return u.Name == policy.GarbageCollector || u.Name == policy.NamespaceController
}

// Applies reports whether Crossplane applies what a pipeline wishes. Its record of
// that is true: nobody else may write it.
func (by Writer) Applies() bool {
	return by.IsCrossplane() && by.User.Name != "" && strings.HasPrefix(by.FieldManager, managedfields.ComposedManager)
}

// Bookkeeping reports whether Crossplane writes an object of its kinds, in which it
// records what belongs together. Other kinds may have fields of the same
// names. What a Composition wishes of them is no bookkeeping: a composition function
// is asked about nothing else.
func Bookkeeping(o Objects, by Writer, how Manner) bool {
	return by.IsCrossplane() && how.Caller != Function && crossplanes(cmp.Or(o.Old, o.New))
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

// SubjectOfBinding reports whether a subject of a binding may be one who initiates by it,
// see [Settings.InitiatesByBinding]. Who is in a group nobody knows.
func (s Settings) SubjectOfBinding(subject v1alpha1.Subject) bool {
	switch subject.Kind {
	case v1alpha1.SubjectUser:
		return s.InitiatesByBinding(policy.User{Name: subject.Name})
	case v1alpha1.SubjectServiceAccount:
		return s.InitiatesByBinding(policy.User{Name: serviceaccount.MakeUsername(subject.Namespace, subject.Name)})
	default:
		return true
	}
}

// InitiatesByBinding reports whether a user may initiate by a binding that names them.
// Those who act for others do not: whoever binds a group must not let Crossplane start
// chains that nobody asked for.
func (s Settings) InitiatesByBinding(u policy.User) bool {
	by := WriterOf(u, "", s)

	return !by.IsCrossplane() && !by.IsManager() && !by.IsProvider() && !ofKubernetes(u)
}
