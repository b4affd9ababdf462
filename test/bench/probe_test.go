// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errNotAsked is the cause while the API server does not know of a configuration: it learns of new ones
// with a delay.
var errNotAsked = errors.New("the API server does not ask yet")

// probe waits until whoever is to be asked about a write is.
func (f *fixture) probe(tb testing.TB) {
	tb.Helper()

	for _, r := range roles() {
		for _, a := range approaches() {
			t := f.targetsOf(tb, a, r, 1)[0]

			eventually(tb, fmt.Sprintf("a look at a %s by %s", t.object.GetKind(), a), func(ctx context.Context) error {
				return f.looked(ctx, a, t)
			})
		}
	}
}

// looked returns an error while an approach is not asked about an object.
func (f *fixture) looked(ctx context.Context, a approach, t *target) error {
	if _, err := t.update(ctx); err != nil {
		return err
	}

	wrong := t.object.DeepCopy()
	wrong.SetAnnotations(nil)
	wrong.Object["spec"] = map[string]any{"size": int64(-1)}
	refused := f.anna.Update(ctx, wrong, client.DryRunAll)

	switch a {
	case byKausality:
		if resource.Annotation(t.object, v1alpha1.AnnotationTrace) == "" || !apierrors.IsForbidden(refused) {
			return errNotAsked
		}
	case byPolicy:
		if !apierrors.IsInvalid(refused) {
			return errors.Join(errNotAsked, refused)
		}
	case byAllowAll, byStamp:
		return errors.Join(refused, f.asked(ctx, a, "admit"), f.asked(ctx, a, "validating"))
	case byNone:
		return refused
	}

	return nil
}

// asked returns an error while the API server has not asked the webhook that allows everything about the kinds
// of an approach, by its metrics.
func (f *fixture) asked(ctx context.Context, a approach, step string) error {
	raw, err := f.get(ctx, "/metrics")
	if err != nil {
		return err
	}

	n, err := sum(raw, "apiserver_admission_webhook_request_total",
		`name="`+peerName(a)+`"`, `operation="UPDATE"`, `type="`+step+`"`)
	if err != nil {
		return err
	}

	if n == 0 {
		return errNotAsked
	}

	return nil
}

// get reads a path of the API server.
func (c *cluster) get(ctx context.Context, path string) ([]byte, error) {
	return c.raw.Get().AbsPath(path).Do(ctx).Raw()
}
