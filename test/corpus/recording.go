// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Recording is a scenario as the log of decisions has it.
type Recording struct {
	// Name of the scenario, and whether it was decided or verified.
	Name string
	// Request of the scenario, and what was decided.
	Request  request.Request
	Decision decision.Decision
	// Asked is what else was recorded, and Entry what is written.
	Asked decisionlog.Asked
	Entry decisionlog.Entry
}

// Recordings are the scenarios that ask something, each once decided and once verified.
func Recordings() ([]Recording, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}

	var (
		out     []Recording
		encoder decisionlog.Encoder
	)

	for i := range all {
		s := &all[i]
		if s.Request == nil {
			continue
		}

		for _, by := range []decisionlog.By{{Part: decisionlog.PartMutate}, {Part: decisionlog.PartEnforce, Stored: true}} {
			r := Recording{Name: s.Name + "/" + string(by.Part), Asked: decisionlog.Asked{By: by, Answers: &decisionlog.Answers{}}}
			r.Request, _ = s.Decision()
			r.Asked.Answers.Watch(&r.Request)

			if by.Stored {
				r.Decision = decision.Verify(r.Request)
			} else {
				r.Decision = decision.Decide(r.Request)
			}

			if r.Entry, err = encoder.Encode(r.Asked, &r.Request, &r.Decision); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}

			out = append(out, r)
		}
	}

	return out, nil
}
