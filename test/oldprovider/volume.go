// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	xpv1 "github.com/crossplane/crossplane-runtime/apis/common/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is that of the provider's kinds; see crds/.
func groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "old.example.org", Version: "v1"}
}

// A Disk is a managed resource.
type Disk struct {
	Volume `json:",inline"`
}

// A Tape is one of another kind, and otherwise like a Disk.
type Tape struct {
	Volume `json:",inline"`
}

// A Volume is what the kinds have in common.
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   VolumeSpec   `json:"spec"`
	Status VolumeStatus `json:"status,omitzero"`
}

// VolumeSpec is what a volume is to be like.
type VolumeSpec struct {
	xpv1.ResourceSpec `json:",inline"`

	// ForProvider is what the external object is to be like.
	ForProvider Parameters `json:"forProvider"`
}

// VolumeStatus is what a volume is like.
type VolumeStatus struct {
	xpv1.ResourceStatus `json:",inline"`

	// AtProvider is what the external object is like.
	AtProvider Parameters `json:"atProvider,omitzero"`
}

// Parameters of an external object. It gets a zone if it is given none.
type Parameters struct {
	Size int64  `json:"size,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// volume returns what the kinds have in common.
func (v *Volume) volume() *Volume { return v }

// SetConditions sets conditions.
func (v *Volume) SetConditions(c ...xpv1.Condition) { v.Status.SetConditions(c...) }

// GetCondition returns a condition.
func (v *Volume) GetCondition(t xpv1.ConditionType) xpv1.Condition { return v.Status.GetCondition(t) }

// SetManagementPolicies sets what the provider may do.
func (v *Volume) SetManagementPolicies(p xpv1.ManagementPolicies) { v.Spec.ManagementPolicies = p }

// GetManagementPolicies says what the provider may do.
func (v *Volume) GetManagementPolicies() xpv1.ManagementPolicies { return v.Spec.ManagementPolicies }

// SetDeletionPolicy sets what becomes of the external object.
func (v *Volume) SetDeletionPolicy(p xpv1.DeletionPolicy) { v.Spec.DeletionPolicy = p }

// GetDeletionPolicy says what becomes of the external object.
func (v *Volume) GetDeletionPolicy() xpv1.DeletionPolicy { return v.Spec.DeletionPolicy }

// SetProviderConfigReference is of no use here.
func (v *Volume) SetProviderConfigReference(r *xpv1.Reference) { v.Spec.ProviderConfigReference = r }

// GetProviderConfigReference is of no use here.
func (v *Volume) GetProviderConfigReference() *xpv1.Reference { return v.Spec.ProviderConfigReference }

// SetPublishConnectionDetailsTo is of no use here.
func (v *Volume) SetPublishConnectionDetailsTo(p *xpv1.PublishConnectionDetailsTo) {
	v.Spec.PublishConnectionDetailsTo = p
}

// GetPublishConnectionDetailsTo is of no use here.
func (v *Volume) GetPublishConnectionDetailsTo() *xpv1.PublishConnectionDetailsTo {
	return v.Spec.PublishConnectionDetailsTo
}

// SetWriteConnectionSecretToReference is of no use here.
func (v *Volume) SetWriteConnectionSecretToReference(r *xpv1.SecretReference) {
	v.Spec.WriteConnectionSecretToReference = r
}

// GetWriteConnectionSecretToReference is of no use here.
func (v *Volume) GetWriteConnectionSecretToReference() *xpv1.SecretReference {
	return v.Spec.WriteConnectionSecretToReference
}

// deepCopy copies a volume.
func (v *Volume) deepCopy() Volume {
	out := *v
	deepCopy(&v.ObjectMeta, &out.ObjectMeta)
	deepCopy(&v.Spec.ResourceSpec, &out.Spec.ResourceSpec)
	deepCopy(&v.Status.ResourceStatus, &out.Status.ResourceStatus)

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

// DeepCopyObject copies a Disk.
func (d *Disk) DeepCopyObject() runtime.Object { return &Disk{Volume: d.deepCopy()} }

// DeepCopyObject copies a Tape.
func (t *Tape) DeepCopyObject() runtime.Object { return &Tape{Volume: t.deepCopy()} }

// A DiskList is a list of Disks.
type DiskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Disk `json:"items"`
}

// DeepCopyObject copies a list.
func (l *DiskList) DeepCopyObject() runtime.Object {
	out := &DiskList{TypeMeta: l.TypeMeta, Items: make([]Disk, len(l.Items))}
	deepCopy(&l.ListMeta, &out.ListMeta)

	for i := range l.Items {
		out.Items[i].Volume = l.Items[i].deepCopy()
	}

	return out
}

// A TapeList is a list of Tapes.
type TapeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Tape `json:"items"`
}

// DeepCopyObject copies a list.
func (l *TapeList) DeepCopyObject() runtime.Object {
	out := &TapeList{TypeMeta: l.TypeMeta, Items: make([]Tape, len(l.Items))}
	deepCopy(&l.ListMeta, &out.ListMeta)

	for i := range l.Items {
		out.Items[i].Volume = l.Items[i].deepCopy()
	}

	return out
}

// addToScheme registers the kinds.
func addToScheme(s *runtime.Scheme) {
	s.AddKnownTypes(groupVersion(), &Disk{}, &DiskList{}, &Tape{}, &TapeList{})
	metav1.AddToGroupVersion(s, groupVersion())
}
