// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// shown is what the external system itself says of which object it is, below status.atProvider.
type shown struct {
	// unique is its uid, or ARN: no other object has it. Another kind may show it, of what it belongs to.
	unique string
	// id is unique within an account at most.
	id string
}

// Paths below status.atProvider.
var (
	pathUID = []string{"status", "atProvider", "manifest", "metadata", "uid"} //nolint:gochecknoglobals // A constant.
	pathARN = []string{"status", "atProvider", "arn"}                         //nolint:gochecknoglobals // A constant.
	pathID  = []string{"status", "atProvider", "id"}                          //nolint:gochecknoglobals // A constant.
)

func shownOf(u *unstructured.Unstructured) shown {
	at := func(path []string) string { return resource.String(u.Object, path...) }

	return shown{unique: cmp.Or(at(pathUID), at(pathARN)), id: at(pathID)}
}

// Unique is what the external system itself says which object a managed resource stands for, its UID or ARN; empty where the provider
// shows none.
func Unique(u *unstructured.Unstructured) string { return shownOf(u).unique }

// Same reports whether two managed resources stand for the same external object, as far as they and their providers say: of two
// kinds of one name, what the external system shows is unique. Of one kind, or the namespaced and the cluster-scoped form of
// one, that, or else provider config, external name and place. A provider config is known by its name: the kind of one
// changes where a managed resource comes into a namespace.
func Same(a, b *unstructured.Unstructured, more Fields) bool {
	x, y := shownOf(a), shownOf(b)

	switch {
	case a.GetKind() != b.GetKind():
		return false
	case x.unique != "" && y.unique != "":
		return x.unique == y.unique
	case Family(a.GroupVersionKind().GroupKind()) != Family(b.GroupVersionKind().GroupKind()):
		return false
	case x.id != "" && y.id != "" && x.id != y.id:
		return false
	}

	return more.kindOf(a.GroupVersionKind().GroupKind()).same(Of(a, more), Of(b, more))
}

// same compares what two managed resources of a kind say. What only one of them says tells nothing.
func (k *kind) same(a, b v1alpha1.ExternalIdentity) bool {
	if configName(a) != configName(b) || k.named && (a.Name == "" || a.Name != b.Name) {
		return false
	}

	compared := k.named

	for text, value := range a.Fields {
		other, ok := b.Fields[text]
		if text == fieldAPIVersion {
			value, other = groupOf(value), groupOf(other)
		}

		if ok && value != other {
			return false
		}

		compared = compared || ok
	}

	return compared
}

func configName(id v1alpha1.ExternalIdentity) string {
	return id.Config[strings.LastIndex(id.Config, "/")+1:]
}

// Keep has a managed resource say of itself and of its external object what [Of] and [Same] read, whatever another function takes
// away from it. The object is modified.
func Keep(u *unstructured.Unstructured, trim func(*unstructured.Unstructured), more Fields) {
	id := Of(u, more)
	paths := [][]string{pathUID, pathARN, pathID}
	values := make([]string, len(paths))

	for i, path := range paths {
		values[i] = resource.String(u.Object, path...)
	}

	trim(u)
	Set(u, id)

	for i, path := range paths {
		if values[i] != "" {
			_ = unstructured.SetNestedField(u.Object, values[i], path...) // It was there.
		}
	}
}
