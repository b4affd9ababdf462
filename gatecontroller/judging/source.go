// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// Given is what the log says of allowances: who started their chains, by which
// policies and windows, and what was attested.
func Given(ctx context.Context, reader client.Reader, list []v1alpha1.Allowance) []any {
	return []any{
		"initiators", gate.Initiators(list), "grantedBy", sources(ctx, reader, list), "attestations", gate.Attestations(list...),
	}
}

// Judged is what the log says of a decision: by which policies, windows and
// Enforcements it was made, and what was attested.
func Judged(d *decision.Decision) []any {
	return []any{"decidedBy", texts(d.Policies()), "enforcements", texts(d.Governing()), "attestations", d.Attestations}
}

// sources are the policies and windows that gave allowances, each once, as
// NAME@GENERATION: the generation that is in force. One that is gone has none.
func sources(ctx context.Context, reader client.Reader, list []v1alpha1.Allowance) []string {
	out := []string{}

	for _, a := range list {
		s := finding.Source{Kind: v1alpha1.KindPolicy, Name: a.Policy}

		var obj client.Object = &v1alpha1.AllowancePolicy{}
		if a.Source.Type == v1alpha1.SourceWindow {
			s, obj = finding.Source{Kind: v1alpha1.KindUpgrade, Name: a.Source.Name}, &v1alpha1.UpgradeAllowance{}
		}

		if s.Name == "" {
			continue
		}

		// The log is not worth an error: without a generation it says less.
		if reader.Get(ctx, client.ObjectKey{Name: s.Name}, obj) == nil {
			s.Generation = obj.GetGeneration()
		}

		if text := s.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return out
}

// texts are policies and the like as NAME@GENERATION.
func texts(list []finding.Source) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}

	return out
}
