// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverKind is the kind of the provider's managed resources; see crds/.
func serverKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "machines.example.org", Version: "v1", Kind: "Server"}
}

// A Trait is a way in which a managed resource's provider differs from a plain
// one.
type Trait string

// Traits.
const (
	// Asynchronous has changes be made in the background, as upjet does: they are
	// reported as synced at once, and as up to date while they are being made.
	Asynchronous Trait = "Asynchronous"
	// Announcing has the condition AsyncOperation say that a change is being made
	// in the background.
	Announcing Trait = "Announcing"
	// Unnumbered leaves observedGeneration out of conditions, as runtimes before
	// crossplane-runtime 1.20 do.
	Unnumbered Trait = "Unnumbered"
	// Blind shows nothing in status.atProvider.
	Blind Trait = "Blind"
)

// A Server is a managed resource.
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   ServerSpec   `json:"spec"`
	Status ServerStatus `json:"status,omitzero"`
}

// ServerSpec is what a Server is to be like.
type ServerSpec struct {
	xpv2.ClusterManagedResourceSpec `json:",inline"`

	// Traits of the provider towards this resource.
	Traits []Trait `json:"traits,omitempty"`
	// ForProvider is what the external object is to be like.
	ForProvider Parameters `json:"forProvider"`
	// InitProvider is what it is to be like besides when it is made.
	InitProvider Parameters `json:"initProvider,omitzero"`
}

// ServerStatus is what a Server is like.
type ServerStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// AtProvider is what the external object is like.
	AtProvider *Parameters `json:"atProvider,omitempty"`
}

// Parameters of an external object. It gets a zone if it is given none; its image
// is of when it is made.
type Parameters struct {
	Size  *int64            `json:"size,omitempty"`
	Color *string           `json:"color,omitempty"`
	Zone  *string           `json:"zone,omitempty"`
	Image *string           `json:"image,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

// has reports whether the provider has a trait towards a resource.
func (s *Server) has(t Trait) bool { return slices.Contains(s.Spec.Traits, t) }

// SetConditions sets conditions as the resource's runtime would.
func (s *Server) SetConditions(c ...xpv2.Condition) {
	c = slices.Clone(c)

	for i := range c {
		if s.has(Unnumbered) {
			c[i].ObservedGeneration = 0
		}
	}

	s.Status.SetConditions(c...)
}

// GetCondition returns a condition.
func (s *Server) GetCondition(t xpv2.ConditionType) xpv2.Condition { return s.Status.GetCondition(t) }

// SetManagementPolicies sets what the provider may do.
func (s *Server) SetManagementPolicies(p xpv2.ManagementPolicies) { s.Spec.ManagementPolicies = p }

// GetManagementPolicies says what the provider may do.
func (s *Server) GetManagementPolicies() xpv2.ManagementPolicies { return s.Spec.ManagementPolicies }

// SetDeletionPolicy sets what becomes of the external object.
func (s *Server) SetDeletionPolicy(p xpv2.DeletionPolicy) { s.Spec.DeletionPolicy = p }

// GetDeletionPolicy says what becomes of the external object.
func (s *Server) GetDeletionPolicy() xpv2.DeletionPolicy { return s.Spec.DeletionPolicy }

// SetProviderConfigReference is of no use here.
func (s *Server) SetProviderConfigReference(r *xpv2.Reference) { s.Spec.ProviderConfigReference = r }

// GetProviderConfigReference is of no use here.
func (s *Server) GetProviderConfigReference() *xpv2.Reference { return s.Spec.ProviderConfigReference }

// SetWriteConnectionSecretToReference is of no use here.
func (s *Server) SetWriteConnectionSecretToReference(r *xpv2.SecretReference) {
	s.Spec.WriteConnectionSecretToReference = r
}

// GetWriteConnectionSecretToReference is of no use here.
func (s *Server) GetWriteConnectionSecretToReference() *xpv2.SecretReference {
	return s.Spec.WriteConnectionSecretToReference
}

// DeepCopyObject copies a Server.
func (s *Server) DeepCopyObject() runtime.Object {
	out := &Server{TypeMeta: s.TypeMeta}
	deepCopy(&s.ObjectMeta, &out.ObjectMeta)
	deepCopy(&s.Spec.ClusterManagedResourceSpec, &out.Spec.ClusterManagedResourceSpec)
	out.Spec.Traits = slices.Clone(s.Spec.Traits)
	out.Spec.ForProvider = s.Spec.ForProvider.deepCopy()
	out.Spec.InitProvider = s.Spec.InitProvider.deepCopy()
	deepCopy(&s.Status.ConditionedStatus, &out.Status.ConditionedStatus)

	if at := s.Status.AtProvider; at != nil {
		out.Status.AtProvider = new(at.deepCopy())
	}

	return out
}

// deepCopy copies one of the parts that can.
func deepCopy[T any, P interface {
	*T
	DeepCopyInto(out *T)
}](from, to P,
) {
	from.DeepCopyInto(to)
}

// deepCopy shares values that nobody changes in place.
func (p Parameters) deepCopy() Parameters {
	p.Tags = maps.Clone(p.Tags)

	return p
}

// A ServerList is a list of Servers.
type ServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Server `json:"items"`
}

// DeepCopyObject copies a list.
func (l *ServerList) DeepCopyObject() runtime.Object {
	out := &ServerList{TypeMeta: l.TypeMeta, Items: make([]Server, len(l.Items))}
	deepCopy(&l.ListMeta, &out.ListMeta)

	for i := range l.Items {
		if s, ok := l.Items[i].DeepCopyObject().(*Server); ok {
			out.Items[i] = *s
		}
	}

	return out
}

// addToScheme registers the kinds.
func addToScheme(s *runtime.Scheme) {
	gvk := serverKind()
	s.AddKnownTypeWithName(gvk, &Server{})
	s.AddKnownTypeWithName(gvk.GroupVersion().WithKind("ServerList"), &ServerList{})
	metav1.AddToGroupVersion(s, gvk.GroupVersion())
}
