// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
)

// Clip makes warnings few and short.
func Clip(warnings []string) []string { return clip(warnings) }

// InputsOf makes Inputs of what a reader lists now.
func InputsOf(reader client.Reader) *Inputs {
	in := &Inputs{reader: reader, compiled: inforce.NewCache()}
	in.stale.Store(true)

	return in
}

// Changed has what is in force read anew.
func (in *Inputs) Changed() { in.stale.Store(true) }

// Note has a decision counted, once it is stored.
func (u *Uses) Note(ctx context.Context, ask *decision.Request, d *decision.Decision) {
	u.note(ctx, admission.Request{}, ask, d)
}
