// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// drift plays an edit by hand of what is wished: it is repaired as Crossplane alone would, or it is seen and stays, until putting
// it back is allowed.
func (p *play) drift(ctx context.Context, e edit) (bool, error) {
	before, edited, err := p.edit(ctx, e)
	if err != nil || edited == nil {
		return false, err
	}

	if _, refused := p.predict(ctx, p.wish, edited); refused != nil {
		p.counts["edits by hand that the API server lets nobody put back"]++

		return false, errEnd
	}

	rsp, after, err := p.passed(ctx, p.wish)
	if err != nil {
		return false, err
	}

	switch {
	case different(edited, after):
		put, err := p.predict(ctx, p.wish, edited)
		if err != nil || different(byName(applied(put)), byName(applied(after))) || !repaired(rsp) {
			return false, p.fault("an edit by hand is not put back as an apply does", "%s\nit says: %s\n-edited, +after:\n%s", e, said(rsp), difference(edited, after))
		}

		p.counts["edits by hand that are repaired"]++

		return true, p.rest(ctx, "after a repair: "+e.what)
	case !fixture.Holds(said(rsp)):
		if put, err := p.predict(ctx, p.wish, edited); err == nil && !different(edited, put) {
			p.counts["edits by hand that no apply puts back"]++

			return true, nil
		}

		return false, p.fault("an edit by hand is not seen", "%s\nit says: %s\n-before, +edited:\n%s\nwished:\n%s", e, said(rsp), difference(before, edited), text(gated(p.wish)))
	}

	p.counts["edits by hand that are seen"]++

	_, again, err := p.passed(ctx, p.wish)
	if err != nil {
		return false, err
	}

	if diff := written(after, again); diff != "" {
		return false, p.fault("an edit by hand that is held is written again", "%s\n-before, +after:\n%s", e, diff)
	}

	return true, p.putBack(ctx, e, again)
}

// repaired reports whether a run says that it puts something back.
func repaired(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool {
		return r.GetReason() == string(v1alpha1.EventReasonRepaired)
	})
}

// putBack opens a window for what is drifted.
func (p *play) putBack(ctx context.Context, e edit, edited *unstructured.Unstructured) error {
	predicted, refused := p.predict(ctx, p.wish, edited)
	if refused != nil {
		p.counts["edits by hand that the API server lets nobody put back"]++

		return errEnd
	}

	p.c.required = []*unstructured.Unstructured{window(p.c.kind.Kind, fields(p.wish, edited.Object, predicted.Object)...)}

	message, err := p.settle(ctx, p.wish)
	if err != nil {
		return err
	}

	p.c.required = nil

	after, err := p.c.observe(ctx)
	if err != nil {
		return err
	}

	if different(byName(applied(predicted)), byName(applied(after))) {
		return p.fault("an edit by hand is not put back where that is allowed", "%s\nit says: %s\n-wanted, +stored:\n%s", e, message, difference(predicted, after))
	}

	return p.rest(ctx, "after an edit by hand was put back: "+e.what)
}

// beside plays an edit by hand of what nobody wished.
func (p *play) beside(ctx context.Context, e edit) (bool, error) {
	_, edited, err := p.edit(ctx, e)
	if err != nil || edited == nil {
		return false, err
	}

	p.counts["edits by hand beside the wish"]++

	rsp, after, err := p.passed(ctx, p.wish)
	if err != nil {
		return false, err
	}

	if diff := written(edited, after); fixture.Holds(said(rsp)) || diff != "" {
		return false, p.fault("an edit of what nobody wished is a change", "%s\nit says: %s\n-edited, +after:\n%s", e, said(rsp), diff)
	}

	return true, p.rest(ctx, "after an edit beside the wish")
}

// edit edits by hand. Edited is nil where the API server refuses it, or where it
// has no effect.
func (p *play) edit(ctx context.Context, e edit) (before, edited *unstructured.Unstructured, err error) {
	if before, err = p.c.observe(ctx); err != nil {
		return nil, nil, err
	}

	if err := p.c.edit(ctx, p.sch, before, e, e.applies() && p.rng.IntN(2) == 0); err != nil {
		return before, nil, nil //nolint:nilerr // Another edit is played.
	}

	if edited, err = p.c.observe(ctx); err != nil || !different(before, edited) {
		return before, nil, err
	}

	return before, edited, nil
}
