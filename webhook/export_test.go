// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// Clip makes warnings few and short.
func Clip(warnings []string) []string { return clip(warnings) }

// InputsOf makes Inputs of what a reader lists now.
func InputsOf(reader client.Reader) *cached.Inputs { return &cached.Inputs{Inputs: current.Of(reader)} }
