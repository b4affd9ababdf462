// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// lagging is a Client whose cache shows what it is told to.
type lagging struct {
	Client *Client

	t    *testing.T
	live client.WithWatch
	// shown is what the cache has of the Shop s; nil for what there is.
	shown *unstructured.Unstructured
	// err is what all writes fail with.
	err error
	now time.Time
}

// created is the version of what is created: the fake client counts those of each object from one.
const created = "1001"

// named is a Shop.
func named(t *testing.T, name, uid string) *unstructured.Unstructured {
	t.Helper()

	return fixture.Parse(t, fmt.Sprintf("{apiVersion: example.org/v1, kind: Shop, metadata: {name: %s, namespace: d, uid: %s}, status: {a: 1}}", name, uid))
}

func newLagging(t *testing.T) *lagging {
	t.Helper()

	s, other := named(t, "s", "one"), named(t, "other", "other")
	l := &lagging{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		live: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(s, other).WithStatusSubresource(s).Build(),
	}

	l.Client = NewClient(interceptor.NewClient(l.live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if u, ok := obj.(*unstructured.Unstructured); ok && key.Name == "s" && l.shown != nil {
				l.shown.DeepCopyInto(u)

				return nil
			}

			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			err := l.write(func() error { return c.Create(ctx, obj, opts...) })
			obj.SetResourceVersion(created)

			return err
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return l.write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return l.write(func() error { return unprocessable(c.Patch(ctx, obj, p, opts...)) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return l.write(func() error { return c.Apply(ctx, config, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return l.write(func() error {
				return l.newest(ctx, obj, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return l.write(func() error {
				return l.newest(ctx, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
			})
		},
	}), 10, func() time.Time { return l.now })

	return l
}

func (l *lagging) write(send func() error) error {
	if l.err != nil {
		return l.err
	}

	return send()
}

// newest is a conflict where the version of the Shop s is another one: the fake client does not compare those of
// unstructured objects where a status is written.
func (l *lagging) newest(ctx context.Context, obj client.Object, send func() error) error {
	if there := l.there(ctx); there.GetResourceVersion() != obj.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Group: "example.org", Resource: "shops"}, obj.GetName(), nil)
	}

	return send()
}

// read reads a Shop by the Client.
func (l *lagging) read(name string) error {
	l.t.Helper()

	u := named(l.t, name, "")

	return l.Client.Get(l.t.Context(), client.ObjectKeyFromObject(u), u)
}

// there is the Shop s that there is.
func (l *lagging) there(ctx context.Context) *unstructured.Unstructured {
	l.t.Helper()

	u := named(l.t, "s", "")
	if err := l.live.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		l.t.Fatal(err)
	}

	return u
}

// change has somebody else change the Shop s.
func (l *lagging) change() {
	l.t.Helper()

	u := l.there(l.t.Context())
	u.SetLabels(map[string]string{"changed": "by another"})

	if err := l.live.Update(l.t.Context(), u); err != nil {
		l.t.Fatal(err)
	}
}

// writes are those of the version of the Shop s that was read.
func writes() map[string]func(context.Context, *Client, *unstructured.Unstructured) error {
	changed := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		out := u.DeepCopy()
		out.SetLabels(map[string]string{"changed": "by us"})
		out.Object["status"] = map[string]any{"a": int64(2)}

		return out
	}

	return map[string]func(context.Context, *Client, *unstructured.Unstructured) error{
		"Update": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			return c.Update(ctx, changed(u))
		},
		"Patch": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			return c.Patch(ctx, changed(u), MergeFrom(u))
		},
		"JSONPatch": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			return c.Patch(ctx, u.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(
				`[{"op": "test", "path": "/metadata/labels", "value": null}, {"op": "add", "path": "/metadata/labels", "value": {"changed": "by us"}}]`)))
		},
		"Apply": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			out := New(u.GroupVersionKind())
			out.SetNamespace(u.GetNamespace())
			out.SetName(u.GetName())
			out.SetUID(u.GetUID())
			out.SetResourceVersion(u.GetResourceVersion())
			out.SetLabels(map[string]string{"changed": "by us"})

			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(FieldManager), client.ForceOwnership)
		},
		"Status().Update": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			return c.Status().Update(ctx, changed(u))
		},
		"Status().Patch": func(ctx context.Context, c *Client, u *unstructured.Unstructured) error {
			return c.Status().Patch(ctx, changed(u), MergeFrom(u))
		},
	}
}

func TestWhatIsOlderThanOurWriteIsNotRead(t *testing.T) {
	for name, write := range writes() {
		t.Run(name, func(t *testing.T) {
			l := newLagging(t)
			l.shown = l.there(t.Context())

			if err := l.read("s"); err != nil {
				t.Fatalf("nothing is written: %v", err)
			}

			if err := write(t.Context(), l.Client, l.there(t.Context())); err != nil {
				t.Fatal(err)
			}

			for range 2 {
				if err := l.read("s"); !Outdated(err) {
					t.Errorf("the cache is behind: %v", err)
				}
			}

			if err := l.read("other"); err != nil {
				t.Errorf("another object: %v", err)
			}

			if l.shown = l.there(t.Context()); l.read("s") != nil {
				t.Errorf("the cache shows our write: %v", l.read("s"))
			}
		})
	}
}

func TestWhatIsOlderThanWhatWeCreatedIsNotRead(t *testing.T) {
	l := newLagging(t)
	if err := l.live.Delete(t.Context(), l.there(t.Context())); err != nil {
		t.Fatal(err)
	}

	if err := l.read("s"); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}

	if err := l.Client.Create(t.Context(), named(t, "s", "two")); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		reason, uid, version string
		want                 bool
	}{
		{"The cache shows what had the name before.", "one", "1000", false},
		{"It shows an older version.", "two", "1000", true},
		{"It shows what we created.", "two", created, false},
	} {
		l.shown = named(t, "s", step.uid)
		l.shown.SetResourceVersion(step.version)

		if err := l.read("s"); Outdated(err) != step.want || err != nil && !step.want {
			t.Errorf("%s\n%v", step.reason, err)
		}
	}
}

func TestAfterAConflictTheSameIsNotReadAgain(t *testing.T) {
	for name, write := range writes() {
		t.Run(name, func(t *testing.T) {
			l := newLagging(t)
			l.shown = l.there(t.Context())
			l.change()

			if err := write(t.Context(), l.Client, l.shown.DeepCopy()); !Outdated(err) || errors.Is(err, errBehind) {
				t.Fatalf("a write of a version that is not the newest: %v", err)
			}

			for range 2 {
				if err := l.read("s"); !errors.Is(err, errBehind) {
					t.Errorf("the cache shows the version that met a conflict: %v", err)
				}
			}

			if err := l.read("other"); err != nil {
				t.Errorf("another object: %v", err)
			}

			if l.shown = l.there(t.Context()); l.read("s") != nil {
				t.Errorf("the cache shows what somebody else wrote: %v", l.read("s"))
			}
		})
	}
}

func TestNothingIsWaitedForAfterAnotherError(t *testing.T) {
	for name, write := range writes() {
		t.Run(name, func(t *testing.T) {
			l := newLagging(t)
			l.shown, l.err = l.there(t.Context()), fixture.ErrRefused

			if err := write(t.Context(), l.Client, l.shown.DeepCopy()); !errors.Is(err, fixture.ErrRefused) {
				t.Fatal(err)
			}

			if err := l.read("s"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheCacheIsNotWaitedForLong as versions may have started over.
func TestTheCacheIsNotWaitedForLong(t *testing.T) {
	for name, write := range writes() {
		for reason, conflict := range map[string]bool{"our write": false, "the write of somebody else": true} {
			t.Run(name+" after "+reason, func(t *testing.T) {
				l := newLagging(t)
				l.shown = l.there(t.Context())

				if conflict {
					l.change()
				}

				if err := write(t.Context(), l.Client, l.shown.DeepCopy()); Outdated(err) != conflict || err != nil && !conflict {
					t.Fatal(err)
				}

				if l.now = l.now.Add(catchUp - 1); !errors.Is(l.read("s"), errBehind) {
					t.Error("it is not waited for")
				}

				if l.now = l.now.Add(1); l.read("s") != nil {
					t.Errorf("it is waited for: %v", l.read("s"))
				}
			})
		}
	}
}

// TestWhatIsOutdatedIsToldFromWhatIsWrong by what the API server says of it.
func TestWhatIsOutdatedIsToldFromWhatIsWrong(t *testing.T) {
	gr, gk := schema.GroupResource{Group: "example.org", Resource: "shops"}, schema.GroupKind{Group: "example.org", Kind: "Shop"}
	failed := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "x", "", 0, false)
	invalid := apierrors.NewInvalid(gk, "x", field.ErrorList{field.Required(field.NewPath("spec"), "")})

	// sent is an error as it arrives.
	sent := func(err *apierrors.StatusError) error {
		raw, cause := json.Marshal(err.ErrStatus)
		status := &metav1.Status{}

		if cause = errors.Join(cause, json.Unmarshal(raw, status)); cause != nil {
			t.Fatal(cause)
		}

		return apierrors.FromObject(status)
	}

	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"None":      {reason: "Nothing failed.", err: nil},
		"Behind":    {reason: "The cache is behind.", err: fmt.Errorf("cannot get Shop: %w", errBehind), want: true},
		"Conflict":  {reason: "Somebody has changed it.", err: sent(apierrors.NewConflict(gr, "x", nil)), want: true},
		"Exists":    {reason: "Somebody has created it.", err: sent(apierrors.NewAlreadyExists(gr, "x")), want: true},
		"Failed":    {reason: "A test of a JSON patch failed.", err: failed, want: true},
		"Sent":      {reason: "So it arrives.", err: sent(failed), want: true},
		"Wrapped":   {reason: "So it is told.", err: fmt.Errorf("cannot patch Shop: %w", sent(failed)), want: true},
		"Invalid":   {reason: "The object is invalid: it will be again.", err: invalid},
		"SentToo":   {reason: "So that arrives.", err: sent(invalid)},
		"Request":   {reason: "The request is wrong.", err: sent(apierrors.NewBadRequest("x"))},
		"Gone":      {reason: "It is gone.", err: sent(apierrors.NewNotFound(gr, "x"))},
		"Forbidden": {reason: "It may not be written.", err: sent(apierrors.NewForbidden(gr, "x", nil))},
		"Refused":   {reason: "Anything else is an error.", err: fixture.ErrRefused},
		"Both":      {reason: "Of two both are to be tried again.", err: fmt.Errorf("x: %w", errors.Join(sent(failed), errBehind)), want: true},
		"Beside":    {reason: "One that stays is not hidden by another.", err: errors.Join(fixture.ErrRefused, sent(failed))},
		"Ahead":     {reason: "Nor by one that comes first.", err: errors.Join(errBehind, sent(apierrors.NewForbidden(gr, "x", nil)))},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Outdated(tc.err); got != tc.want {
				t.Errorf("%s\noutdated: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
