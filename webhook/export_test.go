// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/internal/current"
)

// Clip makes warnings few and short.
func Clip(warnings []string) []string { return clip(warnings) }

// InputsOf makes Inputs of what a reader lists now.
func InputsOf(reader client.Reader) *Inputs { return &Inputs{Inputs: current.Of(reader)} }

// Note has a decision counted, once it is stored.
func (u *Uses) Note(ctx context.Context, ask *decision.Request, d *decision.Decision) {
	u.note(ctx, admission.Request{}, ask, d)
}
