// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Against is what is known of a kind that objects are checked against. The references of its
// schemas are resolved.
type Against struct {
	// Kind that the schema is of.
	Kind schema.GroupKind
	// Schema of the kind; without one nothing is found.
	Schema *spec.Schema
	// Params is the schema of a policy's paramKind, Parent that of the parents of all objects of
	// the kind; nil where it is not known, or where these are of several kinds.
	Params, Parent *spec.Schema
	// Managed is true of a kind of managed resources, which have gates.
	Managed bool
}

// Policy checks the paths and expressions of a policy that are about the kind.
func (a Against) Policy(p *v1alpha1.AllowancePolicySpec) []Finding {
	var parts []Part

	if policy.IsAbout(&p.Match, a.Kind) {
		parts = MatchParts(&p.Match)
	}

	parts = append(parts, allowParts(p.Allow, a.Kind)...)
	if a.Managed {
		parts = append(parts, gateParts(p.Gate)...)
	}

	return a.check(parts)
}

// check checks parts against the schema.
func (a Against) check(parts []Part) []Finding {
	if a.Schema == nil || !isObject(a.Schema) {
		return nil
	}

	var (
		out   []Finding
		typed *typer // Many objects have no expressions.
		err   error
	)

	for _, p := range parts {
		if p.Kind != IsExpression {
			if wrong := a.path(p); wrong != "" {
				out = append(out, found(UnknownPath, p.Written.At.String(), wrong))
			}

			continue
		}

		if typed == nil && err == nil {
			typed, err = newTyper(a)
		}

		if err != nil {
			continue
		}

		if wrong := typed.check(p.Written); wrong != "" {
			out = append(out, found(CELType, p.Written.At.String(), wrong))
		}
	}

	return out
}

// path says what is wrong with a path; empty for what is none.
func (a Against) path(p Part) string {
	pattern, err := change.ParsePattern(p.Written.Text)

	switch {
	case err != nil || p.Kind == isChange && pattern.Pseudo():
		return ""
	case p.Kind == isChange && pattern.Segments()[0].Field == "status":
		return fmt.Sprintf("%s: changes of status are reports of controllers, which no policy is asked about", pattern)
	default:
		return checkPath(a.Schema, pattern)
	}
}
