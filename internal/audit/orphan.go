// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Left judges whether anybody owns a managed resource any more, and lets it go. Gone is
// true where its owner is not there. What its gate lets be deleted is on its way, and
// for as long as [Grace] what waits for that.
func Left(u *unstructured.Unstructured, owner resource.Reference, gone bool, now time.Time) []Finding {
	switch {
	case gone && losable(u):
		return []Finding{ownerGone(RefOf(u), owner)}
	case losable(u) && resource.Deleting(u) && now.Sub(u.GetDeletionTimestamp().Time) > Grace:
		return []Finding{newFinding(DeletionWaits, RefOf(u), "it is being deleted, and its gate is not open for Delete", remedyLeft(RefOf(u))).
			since(u.GetDeletionTimestamp().Time)}
	default:
		return nil
	}
}

// losable reports whether an object is left behind once its owner is gone.
func losable(u *unstructured.Unstructured) bool {
	return resource.IsManaged(u) && (!resource.Deleting(u) || !gate.MayDelete(u))
}

// ownerGone is of a managed resource whose owner is gone.
func ownerGone(about Ref, owner resource.Reference) Finding {
	return newFinding(OwnerGone, about, fmt.Sprintf("its owner %s %s is gone", owner.Kind, owner.Name), remedyGone(about, owner))
}

// remedyGone gives it to its owner, created again, or to none.
func remedyGone(about Ref, owner resource.Reference) string {
	by := Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}

	return fmt.Sprintf(`create %s %s again with the annotation crossplane.io/paused: "true", then kubectl kausality adopt %s --by %s; `+
		"or kubectl kausality release %[3]s", owner.Kind, owner.Name, about.argument(), by.argument())
}

func remedyLeft(about Ref) string {
	return "kubectl kausality adopt " + about.argument() + ", or kubectl kausality release " + about.argument()
}

// argument is the object as an argument of a command, as all remedies write it.
func (r Ref) argument() string {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(r.APIVersion)
	u.SetKind(r.Kind)
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)

	return resource.Argument(u)
}

// Recorded judges the record of an external object whose managed resource is gone: data
// is that of the Secret with that record.
func Recorded(secret Ref, data map[string][]byte) Finding {
	f := newFinding(LeftOutside, secret, "it is the record of an external object whose managed resource is gone: ",
		"take it back with kubectl kausality adopt, or throw the record away with kubectl kausality release --orphan")

	r, err := orphan.ReadRecord(data)
	if err != nil {
		f.Message += err.Error()

		return f
	}

	f.Message += fmt.Sprintf("%s, external name %s", RefOf(r.Object), orphan.ExternalName(r.Object))

	return f.since(r.When)
}
