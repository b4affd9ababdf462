// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAnObjectThatIsDeletedMeanwhileIsNotAnnotated because it was decided about one that is not being deleted.
func TestAnObjectThatIsDeletedMeanwhileIsNotAnnotated(t *testing.T) {
	one, two := map[string]string{"a": "1"}, map[string]string{"a": "2"}

	cases := map[string]struct {
		reason      string
		annotations map[string]string
		do          do
		// before is true of an object that is being deleted already when it is read, and want has its annotations in the end.
		before bool
		want   map[string]string
	}{
		"Changed": {reason: "An annotation would change.", annotations: one, do: annotate("a", "2"), want: one},
		"Added":   {reason: "One would be added.", annotations: one, do: annotate("b", "2"), want: one},
		"Removed": {reason: "One would be removed.", annotations: one, do: annotate("a", nil), want: one},
		"First":   {reason: "One would be the first.", do: annotate("a", "2")},

		"ChangedBefore": {reason: "It is the object that was read.", annotations: one, do: annotate("a", "2"), before: true, want: two},
		"FirstBefore":   {reason: "Also where it had no annotations.", do: annotate("a", "2"), before: true, want: two},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := shop{finalizers: []string{"other"}, annotations: tc.annotations}.on("one")
			c := newRefusing(t, u)

			read := func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(u), u) }
			del := func() error { return c.Delete(t.Context(), u) }

			steps := []func() error{read, del}
			if tc.before {
				steps = []func() error{del, read}
			}

			for _, step := range steps {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}

			if err := tc.do(t.Context(), Writer{Client: c}, u); Outdated(err) == tc.before || err != nil && tc.before {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}

			live := New(u.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, live.GetAnnotations()); diff != "" {
				t.Errorf("%s\nannotations, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
