// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// fields are of which there are few, so that entries meet.
func fields() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"spec.forProvider.a", "spec.b", "create", "delete", "spec.c"})
}

func digests() *rapid.Generator[string] {
	return rapid.Map(rapid.IntRange(0, 300), func(n int) string {
		if n == 0 {
			return ""
		}

		return sha(strconv.Itoa(n))
	})
}

func users() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "anna", "bert", "(unknown)"})
}

// tree is a Claim, its XR, a nested one, and what they compose.
func tree(t *rapid.T) pending.Input {
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetAPIVersion("example.org/v1")
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetUID(types.UID(kind + name))

		return u
	}

	root := object("Store", "team-a", "corner")
	root.SetAnnotations(map[string]string{v1alpha1.AnnotationHeld: allowance.FormatList(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.HeldChange {
		return v1alpha1.HeldChange{Field: fields().Draw(t, "field"), Cause: by(users().Draw(t, "user"), before), Stored: &v1alpha1.StoredChange{}}
	}), 0, 3).Draw(t, "edits"))})

	in := pending.Input{Root: root, Objects: []pending.Object{{Unstructured: root}}, Now: noon, ShowForeign: rapid.Bool().Draw(t, "show")}
	parent := root

	for i := range rapid.IntRange(0, 2).Draw(t, "xrs") {
		x := object("XStore", "", fmt.Sprint("x", i))
		x.Object["spec"] = map[string]any{"resourceRefs": []any{}}

		if rapid.Bool().Draw(t, "known") {
			say(x, "False", "Held", resource.FormatState(v1alpha1.State{More: rapid.IntRange(0, 3).Draw(t, "more"), Changes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.HeldChange {
				e := instance(fields().Draw(t, "field"), "", "x")
				e.Ref.UID = types.UID("Instance" + rapid.SampledFrom([]string{"x0-0", "x1-0", "y"}).Draw(t, "uid"))
				e.Digest, e.Destroys = digests().Draw(t, "digest"), rapid.Bool().Draw(t, "destroys")

				return e
			}), 0, 150).Draw(t, "list")}))
		}

		in.Objects = append(in.Objects, below(x, parent))

		for j := range rapid.IntRange(0, 3).Draw(t, "composed") {
			u := object("Instance", rapid.SampledFrom([]string{"", "team-a", "team-b"}).Draw(t, "namespace"), fmt.Sprintf("x%d-%d", i, j))
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationHeld: allowance.FormatList(rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) v1alpha1.HeldChange {
				return v1alpha1.HeldChange{Field: fields().Draw(t, "field"), To: "x", Cause: &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: users().Draw(t, "user")}, Missing: "r", Digest: digests().Draw(t, "digest")}
			}), 0, 4, func(h v1alpha1.HeldChange) string { return h.Field }).Draw(t, "held"))})
			in.Objects = append(in.Objects, below(u, x))
		}

		parent = x
	}

	return in
}

func TestWhatIsReadInAnotherOrderGivesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := tree(t)
		in.Previous = pending.Status(tree(t))

		want, err := json.Marshal(pending.Status(in))
		if err != nil {
			t.Fatal(err)
		}

		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		order.Shuffle(len(in.Objects), func(i, j int) { in.Objects[i], in.Objects[j] = in.Objects[j], in.Objects[i] })

		got, err := json.Marshal(pending.Status(in))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n%s\n%s", err, want, got)
		}
	})
}

func TestASecondLookAtTheSameWritesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := tree(t)
		in.Previous = pending.Status(in)

		want, err := json.Marshal(in.Previous)
		if err != nil {
			t.Fatal(err)
		}

		in.Now = in.Now.Add(time.Hour)

		got, err := json.Marshal(pending.Status(in))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n%s\n%s", err, want, got)
		}
	})
}

func TestNothingIsLostThatIsNotCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := tree(t)
		got := pending.Status(in)
		all := map[string]bool{}

		for _, o := range in.Objects {
			held, err := allowance.ParseHeld(o.Unstructured)
			if err != nil {
				t.Fatal(err)
			}

			if list, known := resource.StateOf(o.Unstructured); known {
				for _, e := range list.Changes {
					all[e.Digest] = true
				}
			}

			for _, h := range held {
				all[h.Digest] = true
			}
		}

		delete(all, "")

		for _, e := range got.Changes {
			delete(all, e.Digest)
		}

		if left := int(got.Total) - len(got.Changes); len(all) > left {
			t.Fatalf("%d are not listed, and %d counted", len(all), left)
		}

		if !slices.IsSortedFunc(got.Changes, func(a, b v1alpha1.HeldChange) int {
			switch {
			case a.Destroys == b.Destroys:
				return 0
			case a.Destroys:
				return -1
			default:
				return 1
			}
		}) {
			t.Fatal("what destroys something comes first")
		}
	})
}
