// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Annotations and labels of Crossplane's.
const (
	annotationApplied = "kubectl.kubernetes.io/last-applied-configuration"

	labelComposite      = "crossplane.io/composite"
	labelClaimName      = "crossplane.io/claim-name"
	labelClaimNamespace = "crossplane.io/claim-namespace"
)

// Label is on records: which object they are about, as [Key].
const Label = v1alpha1.AnnotationPrefix + "left-behind"

// SecretType is the type of the Secrets that records are stored in: they may hold
// what only the managed resource's readers are to see.
const SecretType = "kausality.io/left-behind" //nolint:gosec // No credential.

// Keys of a record's data.
const (
	keyManifest = "manifest.yaml"
	keyOwner    = "owner.yaml"
	keyObserved = "observed.yaml"
	keyWhen     = "when"
	keyExternal = "external-name"
	keyConfig   = "provider-config"
)

// maxObserved is the most bytes of status that a record stores: a Secret holds
// 1 MiB (k8s.io/api/core/v1.MaxSecretSize).
const maxObserved = 256 * 1024

// Record is what is written down about an external object whose managed resource
// goes without it.
type Record struct {
	// Object is the managed resource, to be created again: without an owner,
	// and only observing.
	Object *unstructured.Unstructured
	// Owner it had; empty for none.
	Owner resource.Reference
	// UID it had.
	UID string
	// When it was written down.
	When time.Time
	// Observed is its status.atProvider.
	Observed map[string]any
}

// NewRecord writes a managed resource down.
func NewRecord(u *unstructured.Unstructured, now time.Time) Record {
	r := Record{
		Object: &unstructured.Unstructured{Object: map[string]any{}},
		UID:    resource.String(u.Object, fieldMetadata, "uid"), When: now.UTC().Truncate(time.Second),
		Observed: resource.Map(u.Object, "status", "atProvider"),
	}
	r.Owner, _ = resource.ParentOf(u)

	r.Object.SetGroupVersionKind(u.GroupVersionKind())
	r.Object.SetNamespace(u.GetNamespace())
	r.Object.SetName(u.GetName())
	r.Object.SetLabels(u.GetLabels())

	annotations := map[string]string{}

	for key, value := range u.GetAnnotations() {
		if !strings.HasPrefix(key, v1alpha1.AnnotationPrefix) && key != annotationApplied {
			annotations[key] = value
		}
	}

	// Where it is the default the provider may find it by, or by nothing else.
	annotations[identity.AnnotationExternalName] = ExternalName(u)
	r.Object.SetAnnotations(annotations)

	spec := map[string]any{}
	maps.Copy(spec, resource.Map(u.Object, "spec"))

	spec["managementPolicies"] = []any{management.ActionObserve}
	r.Object.Object["spec"] = spec

	return r
}

// ReplacedRecord writes down the external object that a managed resource stood for, which stands for another one since. Its
// managed resource is to be made under another name.
func ReplacedRecord(u *unstructured.Unstructured, was v1alpha1.ExternalIdentity, now time.Time) Record {
	of := u.DeepCopy()
	identity.Set(of, was)
	delete(of.Object, "status") // It is of what the managed resource stands for now, or will be.

	r := NewRecord(of, now)
	sum := hash(identity.Describe(u, was))
	r.UID += sum
	r.Object.SetName(u.GetName() + "-" + sum[:8])

	return r
}

// Key identifies an object by kind, namespace and name, as the value of [Label].
func Key(gk schema.GroupKind, namespace, name string) string {
	return hash(gk.String() + "/" + namespace + "/" + name)
}

// Name of the record's Secret: one for each object that ever was.
func (r Record) Name() string {
	return "left-behind-" + r.Key() + "-" + hash(r.UID)
}

// Key of the record's object.
func (r Record) Key() string {
	return Key(r.Object.GroupVersionKind().GroupKind(), r.Object.GetNamespace(), r.Object.GetName())
}

func hash(text string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
}

// Data is what the record's Secret holds.
func (r Record) Data() (map[string][]byte, error) {
	out := map[string][]byte{
		keyWhen: []byte(r.When.Format(time.RFC3339)), keyExternal: []byte(ExternalName(r.Object)), keyConfig: []byte(ProviderConfig(r.Object)),
	}

	owner := map[string]any{
		fieldAPIVersion: r.Owner.APIVersion, fieldKind: r.Owner.Kind, "namespace": r.Owner.Namespace, fieldName: r.Owner.Name, "uid": r.Owner.UID,
	}

	for key, value := range map[string]any{keyManifest: r.Object.Object, keyOwner: owner, keyObserved: r.Observed} {
		raw, err := yaml.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("cannot write down %s of %s %q: %w", key, r.Object.GetKind(), r.Object.GetName(), err)
		}

		if key != keyObserved || len(raw) <= maxObserved {
			out[key] = raw
		}
	}

	return out, nil
}

// errNoManifest is the cause when a record lacks what it is about.
var errNoManifest = errors.New("it holds no managed resource")

// ReadRecord reads what a record's Secret holds. Its UID is not in it.
func ReadRecord(data map[string][]byte) (Record, error) {
	r := Record{Object: &unstructured.Unstructured{}}
	owner := map[string]any{}

	for key, into := range map[string]*map[string]any{keyManifest: &r.Object.Object, keyOwner: &owner, keyObserved: &r.Observed} {
		raw, err := yaml.YAMLToJSON(data[key])
		if err == nil {
			err = json.Unmarshal(raw, into)
		}

		if err != nil {
			return Record{}, fmt.Errorf("cannot read %s of a record: %w", key, err)
		}
	}

	r.Owner = resource.Reference{
		APIVersion: resource.String(owner, fieldAPIVersion), Kind: resource.String(owner, fieldKind),
		Namespace: resource.String(owner, "namespace"), Name: resource.String(owner, fieldName), UID: resource.String(owner, "uid"),
	}

	if r.Object.GetKind() == "" || !resource.IsManaged(r.Object) {
		return Record{}, fmt.Errorf("cannot read a record: %w", errNoManifest)
	}

	var err error
	if r.When, err = time.Parse(time.RFC3339, string(data[keyWhen])); err != nil {
		return Record{}, fmt.Errorf("cannot read the time of a record: %w", err)
	}

	return r, nil
}
