// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/labels"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Names says whether the policy's fields cover a change.
func (p *Policy) Names(c change.Change) bool {
	return slices.ContainsFunc(p.fields, func(f change.Pattern) bool { return f.Covers(c.Path) })
}

// Verdict is whether an object and a request meet a policy's selectors and
// expressions.
type Verdict struct {
	// Met is true when all of them hold.
	Met bool
	// Missing says what does not hold, for a person; empty when Met.
	Missing string
	// Problem is an expression that could not be evaluated; it counts as not
	// met.
	Problem error
}

// Evaluate checks the policy's selectors and expressions.
func (p *Policy) Evaluate(in Input) Verdict {
	obj := in.Object
	if obj == nil {
		obj = in.OldObject
	}

	if !p.objects.Matches(labelsOf(obj)) {
		return Verdict{Missing: fmt.Sprintf("the object does not match objectSelector %q", p.objects)}
	}

	namespaced := in.NamespaceObject != nil || resource.String(obj, "metadata", "namespace") != ""
	if namespaced && !p.namespaces.Matches(labelsOf(in.NamespaceObject)) {
		return Verdict{Missing: fmt.Sprintf("the namespace does not match namespaceSelector %q", p.namespaces)}
	}

	budget := uint64(apiservercel.RuntimeCELCostBudget)

	for _, e := range p.expressions {
		ok, cost, err := e.Eval(in)
		if err == nil && cost > budget {
			err = fmt.Errorf("cannot evaluate CEL %q: the policy's expressions cost more than %d in all", e, apiservercel.RuntimeCELCostBudget)
		}

		if err != nil {
			return Verdict{Missing: fmt.Sprintf("CEL %q could not be evaluated", e), Problem: err}
		}

		budget -= cost

		if !ok {
			return Verdict{Missing: fmt.Sprintf("CEL %q is false", e)}
		}
	}

	return Verdict{Met: true}
}

func labelsOf(obj map[string]any) labels.Set {
	out := labels.Set{}

	for k, v := range resource.Map(obj, "metadata", "labels") {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}

	return out
}

// maxAttestation is the most bytes of one captured value that are stored.
const maxAttestation = 256

// Attestations returns the values of the policy's capture fields by their
// concrete paths, nil when there are none. Values that are no strings are
// written as JSON; long ones are cut.
func (p *Policy) Attestations(obj map[string]any) map[string]string {
	var out map[string]string

	paved := fieldpath.Pave(obj)

	for _, c := range p.capture {
		for _, path := range concrete(paved, c) {
			v, err := paved.GetValue(path)
			if err != nil {
				continue
			}

			if out == nil {
				out = map[string]string{}
			}

			out[path] = change.Text(v, maxAttestation)
		}
	}

	return out
}

// concrete returns the paths a capture field stands for: as the policy writes
// it, or one per match of its wildcards.
func concrete(paved *fieldpath.Paved, c change.Pattern) []string {
	if !c.Wildcard() {
		return []string{c.String()}
	}

	paths, err := paved.ExpandWildcards(c.String())
	if err != nil {
		return nil
	}

	return paths
}

// MergeAttestations adds captured values to others; the first of a path stays.
func MergeAttestations(have, add map[string]string) map[string]string {
	if have == nil {
		return maps.Clone(add)
	}

	for k, v := range add {
		if _, ok := have[k]; !ok {
			have[k] = v
		}
	}

	return have
}
