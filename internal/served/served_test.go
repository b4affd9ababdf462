// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/internal/served"
)

var errBoom = errors.New("boom")

// noPath is how the API server answers for a version that it does not serve any
// more, to a client that still thinks it does.
func noPath() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", schema.GroupResource{Group: "example.org", Resource: "xs"}, "x",
		"404 page not found", 0, true)
}

func TestAnObjectIsGoneOnlyWhereThatIsProven(t *testing.T) {
	kind := schema.GroupKind{Group: "example.org", Kind: "X"}
	absent := apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "xs"}, "x")
	unknown := &meta.NoKindMatchError{GroupKind: kind}

	definition := func(served ...string) unstructured.Unstructured {
		var versions []any
		for _, v := range served {
			versions = append(versions, map[string]any{"name": v, "served": true})
		}

		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"names": map[string]any{"kind": "X"}, "versions": append(versions, map[string]any{"name": "v1alpha1", "served": false}),
		}}}
	}

	cases := map[string]struct {
		reason string
		// answers by version; unknown where there is none.
		answers map[string]error
		mapped  string
		crds    []unstructured.Unstructured
		crdErr  error
		version string
		want    error
	}{
		"There":          {reason: "It is there.", answers: map[string]error{"v1alpha1": nil}, version: "v1alpha1"},
		"Absent":         {reason: "A version that is served does not have it.", answers: map[string]error{"v1alpha1": absent}, want: served.ErrGone},
		"Broken":         {reason: "An error is one.", answers: map[string]error{"v1alpha1": errBoom}, want: errBoom},
		"Mapped":         {reason: "It is served in another version.", answers: map[string]error{"v1": nil}, mapped: "v1", version: "v1"},
		"AbsentInMapped": {reason: "That one does not have it.", answers: map[string]error{"v1": absent}, mapped: "v1", want: served.ErrGone},
		"Path": {
			reason:  "A path that is not there is no object that is not there; and the mapper may be behind.",
			answers: map[string]error{"v1alpha1": noPath(), "v1": nil}, mapped: "v1alpha1",
			crds: []unstructured.Unstructured{definition("v1")}, version: "v1",
		},
		"NobodyDefines": {reason: "Without a CRD there can be none.", want: served.ErrGone},
		"Undefined":     {reason: "Nobody can report whether there is a CRD.", crdErr: errBoom, want: errBoom},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.org", Version: tc.mapped}})
			if tc.mapped != "" {
				mapper.Add(kind.WithVersion(tc.mapped), meta.RESTScopeRoot)
			}

			u, err := served.Lookup{
				Mapper: mapper,
				Get: func(_ context.Context, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
					u := &unstructured.Unstructured{}
					u.SetGroupVersionKind(gvk)

					if err, ok := tc.answers[gvk.Version]; ok {
						return u, err
					}

					return nil, unknown
				},
				Definitions: func(context.Context, string) ([]unstructured.Unstructured, error) { return tc.crds, tc.crdErr },
			}.Find(t.Context(), kind.WithVersion("v1alpha1"))

			if !errors.Is(err, tc.want) {
				t.Fatalf("%s\n%v, want %v", tc.reason, err, tc.want)
			}

			if err == nil && u.GroupVersionKind().Version != tc.version {
				t.Errorf("%s\nversion %s, want %s", tc.reason, u.GroupVersionKind().Version, tc.version)
			}
		})
	}
}

func TestAKindOfNoServedVersionIsNotGone(t *testing.T) {
	kind := schema.GroupKind{Group: "example.org", Kind: "X"}
	crd := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"names": map[string]any{"kind": "X"}, "versions": []any{map[string]any{"name": "v1", "served": false}},
	}}}

	_, err := served.Lookup{
		Mapper: meta.NewDefaultRESTMapper(nil),
		Get: func(context.Context, schema.GroupVersionKind) (*unstructured.Unstructured, error) {
			return nil, &meta.NoKindMatchError{GroupKind: kind}
		},
		Definitions: func(context.Context, string) ([]unstructured.Unstructured, error) {
			return []unstructured.Unstructured{crd}, nil
		},
	}.Find(t.Context(), kind.WithVersion("v1"))
	if err == nil || errors.Is(err, served.ErrGone) {
		t.Errorf("%v", err)
	}
}
