// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// maxWarnings is the limit of warnings of a response. The API server cuts each at 256 characters
// once all of a response exceed 4096, and drops those it cannot put into a header.
//
// Source: k8s.io/apiserver pkg/endpoints/filters/warning.go.
const maxWarnings = 8

// clip makes warnings few and short enough to arrive whole.
func clip(warnings []string) []string {
	out := make([]string, 0, min(len(warnings), maxWarnings))

	for i, w := range warnings {
		if i == maxWarnings-1 && len(warnings) > maxWarnings {
			return append(out, fmt.Sprintf("and %d more like these", len(warnings)-i))
		}

		out = append(out, message.Cut(w, message.Most))
	}

	return out
}
