// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// written is an object that somebody else writes, too.
const written = "{apiVersion: example.org/v1, kind: Shop, metadata: {name: s, namespace: d, uid: one, finalizers: [other], annotations: {a: '1'}}, " +
	"status: {list: [{type: A}, {type: B}]}}"

// shopSchema says that finalizers are a set, as they are of all kinds: without a schema the fake client takes any list for
// one value.
const shopSchema = `{"Shop": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	"x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Shop"}],
	"properties": {"metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
		"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}}}}}`

// refusing is a client that answers as the API server does where the fake client does not, and what it is told to
// before. It counts the writes.
type refusing struct {
	client.Client

	err    error
	writes int
}

func newRefusing(t *testing.T, objects ...client.Object) *refusing {
	t.Helper()

	var schemas map[string]*spec.Schema
	if err := json.Unmarshal([]byte(shopSchema), &schemas); err != nil {
		t.Fatal(err)
	}

	shops, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		t.Fatal(err)
	}

	r := &refusing{}
	b := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithTypeConverters(shops)

	for _, u := range objects {
		b = b.WithObjects(u).WithStatusSubresource(u)
	}

	r.Client = b.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return r.write(func() error { return unprocessable(c.Patch(ctx, obj, p, opts...)) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return r.write(func() error { return unprocessable(c.SubResource(sub).Patch(ctx, obj, p, opts...)) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return r.write(func() error {
				if err := anotherUID(ctx, c, config); err != nil {
					return err
				}

				return c.Apply(ctx, config, opts...)
			})
		},
	}).Build()

	return r
}

func (r *refusing) write(send func() error) error {
	r.writes++

	if r.err != nil {
		return r.err
	}

	return send()
}

// unprocessable is what the API server makes of a JSON patch that cannot be applied.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go, jsonPatcher.applyJSPatch.
func unprocessable(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}

	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// anotherUID is what the API server makes of what is applied to an object of another UID than there is, if of any.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go, patcher.applyPatch; k8s.io/apimachinery
// pkg/api/validation, ValidateObjectMetaAccessorUpdate.
func anotherUID(ctx context.Context, c client.Client, config runtime.ApplyConfiguration) error {
	obj, _ := config.(client.Object)
	live := New(obj.GetObjectKind().GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)

	switch {
	case obj.GetUID() == "":
		return nil
	case apierrors.IsNotFound(err):
		return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errUID)
	case err == nil && live.GetUID() != obj.GetUID():
		return apierrors.NewInvalid(live.GroupVersionKind().GroupKind(), obj.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), obj.GetUID(), "field is immutable"),
		})
	default:
		return err
	}
}

var errUID = errors.New("uid mismatch")

// do is a write.
type do func(context.Context, Writer, *unstructured.Unstructured) error

func add(ctx context.Context, w Writer, u *unstructured.Unstructured) error {
	return w.AddFinalizer(ctx, u)
}

func remove(ctx context.Context, w Writer, u *unstructured.Unstructured) error {
	return w.RemoveFinalizer(ctx, u)
}

// annotate writes an annotation; nil removes it. What it returns is what is there.
func annotate(key string, value any) do {
	return func(ctx context.Context, w Writer, u *unstructured.Unstructured) error {
		out, err := w.Annotate(ctx, u, map[string]any{key: value})
		if err != nil {
			return err
		}

		live := New(u.GroupVersionKind())
		if err := client.IgnoreNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(u), live)); err != nil {
			return err
		}

		if live.GetName() != "" && cmp.Diff(live.Object["metadata"], out.Object["metadata"]) != "" {
			return errAnother
		}

		return nil
	}
}

var errAnother = errors.New("it returns another object than there is")

func replace(path string, was, now any) do {
	return func(ctx context.Context, w Writer, u *unstructured.Unstructured) error {
		return w.ReplaceStatus(ctx, u, path, was, now)
	}
}

func TestAWriteChangesWhatItIsAboutAndNothingElse(t *testing.T) {
	const bare = "{apiVersion: example.org/v1, kind: Shop, metadata: {name: s, namespace: d, uid: one}}"

	cases := map[string]struct {
		reason, object string
		do             []do
		refuse         error
		writes         int
		finalizers     []string
		annotations    map[string]string
		err            error
		late           bool
	}{
		"Add":    {reason: "Ours comes to those of others.", object: written, do: []do{add}, writes: 1, finalizers: []string{"other", v1alpha1.Finalizer}, annotations: map[string]string{"a": "1"}},
		"First":  {reason: "Ours comes where there is none.", object: bare, do: []do{add}, writes: 1, finalizers: []string{v1alpha1.Finalizer}},
		"Twice":  {reason: "It is there once.", object: written, do: []do{add, add}, writes: 2, finalizers: []string{"other", v1alpha1.Finalizer}, annotations: map[string]string{"a": "1"}},
		"Remove": {reason: "Those of others stay.", object: written, do: []do{add, remove}, writes: 2, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
		"Foreground": {
			reason: "That of a deletion in the foreground is for children.", object: strings.Replace(written, "[other]", "[foregroundDeletion]", 1),
			do: []do{add, remove}, writes: 2, finalizers: []string{"foregroundDeletion"}, annotations: map[string]string{"a": "1"},
		},
		"ForegroundManaged": {
			reason: "A provider would wait for the end of it, and the garbage collector not for the provider.",
			object: strings.NewReplacer("[other]", "[finalizer.managedresource.crossplane.io, foregroundDeletion]", "status:", "spec: {managementPolicies: [Observe], forProvider: {}}, status:").Replace(written),
			do:     []do{add, remove}, writes: 2, finalizers: []string{"finalizer.managedresource.crossplane.io"}, annotations: map[string]string{"a": "1"},
		},
		"Last":      {reason: "Where ours is the last none is left.", object: bare, do: []do{add, remove}, writes: 2},
		"Annotate":  {reason: "Other annotations stay.", object: written, do: []do{annotate("b", "2")}, writes: 1, finalizers: []string{"other"}, annotations: map[string]string{"a": "1", "b": "2"}},
		"Replace":   {reason: "What is there is replaced.", object: written, do: []do{annotate("a", "2")}, writes: 1, finalizers: []string{"other"}, annotations: map[string]string{"a": "2"}},
		"Unsay":     {reason: "Nil removes one.", object: written, do: []do{annotate("b", "2"), annotate("a", nil)}, writes: 2, finalizers: []string{"other"}, annotations: map[string]string{"b": "2"}},
		"Before":    {reason: "The first annotation comes with the field.", object: bare, do: []do{annotate("b", "2")}, writes: 1, annotations: map[string]string{"b": "2"}},
		"Nothing":   {reason: "Nothing is sent to remove what is not there.", object: written, do: []do{annotate("b", nil)}, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
		"None":      {reason: "Nor where there are no annotations.", object: bare, do: []do{annotate("b", nil)}},
		"Slash":     {reason: "A key with a prefix is one part of a path.", object: written, do: []do{annotate("example.org/b", "2"), annotate("example.org/b", "3")}, writes: 2, finalizers: []string{"other"}, annotations: map[string]string{"a": "1", "example.org/b": "3"}},
		"Tilde":     {reason: "So is one with a tilde.", object: written, do: []do{annotate("~1b", "2"), annotate("~1b", "3"), annotate("a", nil)}, writes: 3, finalizers: []string{"other"}, annotations: map[string]string{"~1b": "3"}},
		"Gone":      {reason: "What is gone needs no change.", do: []do{annotate("a", "2")}, writes: 1},
		"GoneToo":   {reason: "Nor is it annotated.", do: []do{annotate("b", "2")}, writes: 1},
		"Made":      {reason: "What is gone is not made again.", do: []do{add}, writes: 1, late: true},
		"Forbidden": {reason: "What is refused is an error.", object: written, do: []do{add}, refuse: fixture.ErrRefused, writes: 1, err: fixture.ErrRefused, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
		"Refused":   {reason: "So it is of an annotation.", object: written, do: []do{annotate("b", "2")}, refuse: fixture.ErrRefused, writes: 1, err: fixture.ErrRefused, finalizers: []string{"other"}, annotations: map[string]string{"a": "1"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newRefusing(t)
			if tc.object != "" {
				c = newRefusing(t, fixture.Parse(t, tc.object))
			}

			c.err = tc.refuse

			for _, do := range tc.do {
				u := fixture.Parse(t, written)
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}

				if tc.object == "" {
					u = fixture.Parse(t, written)
				}

				before := u.DeepCopy()

				if err := do(t.Context(), Writer{Client: c}, u); Outdated(err) != tc.late || !errors.Is(err, tc.err) && !tc.late {
					t.Fatalf("%s\nerror %v", tc.reason, err)
				}

				if diff := cmp.Diff(before, u); diff != "" {
					t.Errorf("%s\nwhat was read is modified:\n%s", tc.reason, diff)
				}
			}

			if c.writes != tc.writes {
				t.Errorf("%s\n%d writes, want %d", tc.reason, c.writes, tc.writes)
			}

			u := New(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Shop"})
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "d", Name: "s"}, u); apierrors.IsNotFound(err) != (tc.object == "") {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.finalizers, u.GetFinalizers()); diff != "" {
				t.Errorf("%s\nfinalizers, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.annotations, u.GetAnnotations()); diff != "" {
				t.Errorf("%s\nannotations, -want, +got:\n%s", tc.reason, diff)
			}

			if HasFinalizer(u) != slices.Contains(tc.finalizers, v1alpha1.Finalizer) {
				t.Errorf("%s\nHasFinalizer: %v", tc.reason, HasFinalizer(u))
			}
		})
	}
}

// shop is what there is of an object.
type shop struct {
	finalizers  []string
	annotations map[string]string
	list        []any
}

// on makes an object of a UID so.
func (s shop) on(uid types.UID) *unstructured.Unstructured {
	u := New(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Shop"})
	u.SetNamespace("d")
	u.SetName("s")
	u.SetUID(uid)
	u.SetFinalizers(s.finalizers)
	u.SetAnnotations(s.annotations)

	if s.list != nil {
		u.Object["status"] = map[string]any{"list": s.list}
	}

	return u
}

// has reports what differs between what there is to be and the object.
func (s shop) has(t *testing.T, c client.Reader, uid types.UID) string {
	t.Helper()

	live, want := New(s.on(uid).GroupVersionKind()), s.on(uid)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), live); err != nil {
		t.Fatal(err)
	}

	want.SetResourceVersion(live.GetResourceVersion())

	if live.Object["status"] == nil {
		delete(live.Object, "status") // The fake client makes nothing null.
	}

	return cmp.Diff(want, live)
}

// TestOnlyWhatAWriteReplacesMayNotHaveChangedMeanwhile whatever version the object has by then.
func TestOnlyWhatAWriteReplacesMayNotHaveChangedMeanwhile(t *testing.T) {
	const (
		other = "other"
		ours  = v1alpha1.Finalizer
		slash = "example.org/b"
	)

	of := func(types ...string) []any {
		out := make([]any, 0, len(types))
		for _, typ := range types {
			out = append(out, map[string]any{"type": typ})
		}

		return out
	}
	second := replace("/status/list/1", of("B")[0], of("D")[0])

	// Without a want it is outdated, and stays as it is meanwhile.
	cases := map[string]struct {
		reason    string
		do        do
		read      shop
		meanwhile shop
		want      *shop
	}{
		"AnotherAnnotation": {"Another annotation is no business of ours.", annotate("b", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"a": "1", "c": "3"}}, &shop{annotations: map[string]string{"a": "1", "b": "2", "c": "3"}}},
		"AnotherChanged":    {"Nor is one that changes.", annotate("b", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"a": "9"}}, &shop{annotations: map[string]string{"a": "9", "b": "2"}}},
		"AnotherRemoved":    {"Nor is one that goes.", annotate("a", "2"), shop{annotations: map[string]string{"a": "1", "c": "3"}}, shop{annotations: map[string]string{"a": "1"}}, &shop{annotations: map[string]string{"a": "2"}}},
		"AFinalizer":        {"Nor is a finalizer.", annotate("a", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{finalizers: []string{other}, annotations: map[string]string{"a": "1"}}, &shop{finalizers: []string{other}, annotations: map[string]string{"a": "2"}}},
		"AStatus":           {"Nor is the status.", annotate("a", nil), shop{annotations: map[string]string{"a": "1", "c": "3"}}, shop{annotations: map[string]string{"a": "1", "c": "3"}, list: of("A")}, &shop{annotations: map[string]string{"c": "3"}, list: of("A")}},
		"FirstAndStatus":    {"Nor is it for the first annotation.", annotate("a", "2"), shop{}, shop{finalizers: []string{other}, list: of("A")}, &shop{finalizers: []string{other}, annotations: map[string]string{"a": "2"}, list: of("A")}},
		"Changed":           {"What is replaced has another value.", annotate("a", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"a": "9"}}, nil},
		"Removed":           {"What is replaced is gone.", annotate("a", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"c": "3"}}, nil},
		"AllRemoved":        {"It is gone with all annotations.", annotate("a", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{}, nil},
		"Added":             {"What is added is there.", annotate("b", "2"), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"a": "1", "b": "9"}}, nil},
		"Kept":              {"What is removed has another value.", annotate("a", nil), shop{annotations: map[string]string{"a": "1"}}, shop{annotations: map[string]string{"a": "9"}}, nil},
		"ChangedWithSlash":  {"Also where its key has a slash.", annotate(slash, "2"), shop{annotations: map[string]string{slash: "1"}}, shop{annotations: map[string]string{slash: "9"}}, nil},
		"First":             {"Another one was the first of all annotations, and would be lost.", annotate("b", "2"), shop{}, shop{annotations: map[string]string{"c": "3"}}, nil},

		"AddBesideOthers":    {"Ours comes to a finalizer that came.", add, shop{finalizers: []string{other}}, shop{finalizers: []string{other, "new"}}, &shop{finalizers: []string{other, "new", ours}}},
		"AddAlone":           {"One that went does not come back with ours.", add, shop{finalizers: []string{other}}, shop{}, &shop{finalizers: []string{ours}}},
		"AddAgain":           {"Ours is there already.", add, shop{finalizers: []string{other}}, shop{finalizers: []string{ours, other}}, &shop{finalizers: []string{ours, other}}},
		"AddWithAll":         {"All else is no business of a finalizer.", add, shop{}, shop{annotations: map[string]string{"c": "3"}, list: of("A")}, &shop{finalizers: []string{ours}, annotations: map[string]string{"c": "3"}, list: of("A")}},
		"RemoveWithAll":      {"Nor is it where that goes.", remove, shop{finalizers: []string{other, ours}, annotations: map[string]string{"b": "2"}}, shop{finalizers: []string{other, ours}, annotations: map[string]string{"b": "2", "c": "3"}, list: of("A")}, &shop{finalizers: []string{other}, annotations: map[string]string{"b": "2", "c": "3"}, list: of("A")}},
		"RemoveGiven":        {"It is let go by what it carries.", remove, shop{finalizers: []string{other, ours}, annotations: map[string]string{"b": "2"}}, shop{finalizers: []string{other, ours}, annotations: map[string]string{"b": "2", v1alpha1.AnnotationAllowances: "[]"}}, nil},
		"RemoveGivenFirst":   {"Also where nothing was there.", remove, shop{finalizers: []string{other, ours}}, shop{finalizers: []string{other, ours}, annotations: map[string]string{v1alpha1.AnnotationAllowances: "[]"}}, nil},
		"RemoveBesideOthers": {"A finalizer that came would be lost.", remove, shop{finalizers: []string{other, ours}}, shop{finalizers: []string{other, ours, "new"}}, nil},
		"RemoveAlone":        {"One that went would be back.", remove, shop{finalizers: []string{other, ours}}, shop{finalizers: []string{ours}}, nil},
		"RemoveAgain":        {"Ours is gone, with all.", remove, shop{finalizers: []string{ours}}, shop{}, nil},

		"Status":        {"Metadata is no business of a status.", second, shop{list: of("A", "B")}, shop{annotations: map[string]string{"c": "3"}, list: of("A", "B")}, &shop{annotations: map[string]string{"c": "3"}, list: of("A", "D")}},
		"StatusOther":   {"Nor is another value of it.", second, shop{list: of("A", "B")}, shop{list: of("C", "B")}, &shop{list: of("C", "D")}},
		"StatusMoved":   {"Another value is in that place.", second, shop{list: of("A", "B")}, shop{list: of("B", "A")}, nil},
		"StatusRemoved": {"Nothing is in that place.", second, shop{list: of("A", "B")}, shop{list: of("B")}, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newRefusing(t, tc.read.on("one"))

			u := tc.read.on("one")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				t.Fatal(err)
			}

			changed := tc.meanwhile.on("one")
			changed.SetResourceVersion(u.GetResourceVersion())

			if err := c.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}

			if tc.meanwhile.list != nil {
				changed.Object["status"] = map[string]any{"list": tc.meanwhile.list}

				if err := c.Client.Status().Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}

			want, outdated := tc.want, tc.want == nil
			if outdated {
				want = &tc.meanwhile
			}

			if err := tc.do(t.Context(), Writer{Client: c}, u); Outdated(err) != outdated || err != nil && !outdated {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}

			if diff := want.has(t, c, "one"); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnotherObjectOfTheSameNameIsNotWritten though all that is replaced is as it was read.
func TestAnotherObjectOfTheSameNameIsNotWritten(t *testing.T) {
	same := shop{finalizers: []string{v1alpha1.Finalizer}, annotations: map[string]string{"a": "1"}, list: []any{"A"}}

	for name, do := range map[string]do{
		"Annotate": annotate("a", "2"), "Remove": remove, "Add": add, "ReplaceStatus": replace("/status/list/0", "A", "B"),
	} {
		t.Run(name, func(t *testing.T) {
			c := newRefusing(t, same.on("two"))

			// The API server calls another UID that is applied invalid, and what fails a test outdated.
			if err := do(t.Context(), Writer{Client: c}, same.on("one")); err == nil || Outdated(err) == (name == "Add") {
				t.Errorf("error %v", err)
			}

			if diff := same.has(t, c, "two"); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestAnObjectIsFoundInTheVersionThatIsServed(t *testing.T) {
	v2 := schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Shop"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v2.GroupVersion()})
	mapper.Add(v2, meta.RESTScopeNamespace)

	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(
		fixture.Parse(t, "{apiVersion: example.org/v2, kind: Shop, metadata: {name: s, namespace: d}}"),
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Version == "v1" {
				return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
			}

			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	ref := func(kind, name string) resource.Reference {
		return resource.Reference{APIVersion: "example.org/v1", Kind: kind, Namespace: "d", Name: name}
	}

	u, err := Find(t.Context(), c, mapper, ref("Shop", "s"))
	if err != nil || u.GetAPIVersion() != "example.org/v2" {
		t.Errorf("found %v, %v", u, err)
	}

	if _, err := Find(t.Context(), c, mapper, ref("Shop", "none")); !errors.Is(err, ErrGone) {
		t.Errorf("an object that is gone: %v", err)
	}

	if _, err := Find(t.Context(), c, mapper, ref("None", "s")); !errors.Is(err, ErrGone) {
		t.Errorf("a kind that is gone: %v", err)
	}

	if IsGone(fixture.ErrRefused) || !IsGone(apierrors.NewNotFound(schema.GroupResource{}, "x")) || !IsGone(&meta.NoKindMatchError{}) {
		t.Error("gone is what is not found, or has no kind")
	}
}
