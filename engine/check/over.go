// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// findOver finds what has ended.
func (l *linter) findOver() {
	for _, w := range l.Input.Windows {
		if until := w.Object.Spec.ValidUntil.Time; !l.broken[w.At] && !l.Input.Now.Before(until) {
			l.report.Add(w.At, typecheck.WindowOver, "spec.validUntil",
				fmt.Sprintf("the window has ended at %s, and allows nothing any more", until.UTC().Format(time.RFC3339)),
				"delete it, or set another end")
		}
	}

	for _, e := range l.Input.Enforcements {
		for i, x := range e.Object.Spec.Exceptions {
			if l.broken[e.At] || l.Input.Now.Before(x.Until.Time) {
				continue
			}

			at := field.NewPath("spec", "exceptions").Index(i).Child("until")
			l.report.Add(e.At, typecheck.ExceptionOver, at.String(), fmt.Sprintf("the exception %q (%s) has ended at %s, and lets nobody any more",
				x.Name, x.Reason, x.Until.UTC().Format(time.RFC3339)), "take it away, or set another end")
		}
	}
}
