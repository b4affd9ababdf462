// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ErrNotUnderstood is the cause where an annotation is of another version.
var ErrNotUnderstood = errors.New("it is of a form that this version does not know")

// ParseDesired reads kausality.io/desired-policies; without the annotation there are no policies. It reads what
// [FormatDesired] writes and nothing else: the API server compares texts. The policies are not to be modified. The error
// names the annotation.
func ParseDesired(u *unstructured.Unstructured) (v1alpha1.DesiredPolicies, error) {
	text := resource.Annotation(u, v1alpha1.AnnotationDesiredPolicies)
	if text == "" {
		return v1alpha1.DesiredPolicies{}, nil
	}

	out, ok := desiredTexts()[text]
	if !ok {
		return v1alpha1.DesiredPolicies{}, fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationDesiredPolicies, ErrNotUnderstood)
	}

	return out, nil
}

// desiredTexts are all records, by text: each object is asked for its own several times a decision.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var desiredTexts = sync.OnceValue(func() map[string]v1alpha1.DesiredPolicies {
	out := map[string]v1alpha1.DesiredPolicies{}

	for _, set := range append(subsets(Order()), nil, []string{ActionAll}) {
		for _, mode := range []v1alpha1.Mode{"", v1alpha1.ModeAudit} {
			rec := v1alpha1.DesiredPolicies{V: v1alpha1.RecordVersion, Policies: set, Mode: mode}
			out[FormatDesired(rec)] = rec

			if paused := Paused(rec); paused.Before != nil {
				out[FormatDesired(paused)] = paused
			}
		}
	}

	return out
})

// subsets are those of a list, in its order.
func subsets(list []string) [][]string {
	out := [][]string{{}}

	for _, e := range list {
		for _, set := range out {
			out = append(out, append(slices.Clone(set), e))
		}
	}

	return out
}

// FormatDesired writes that annotation. Without policies the resource has no gate.
func FormatDesired(rec v1alpha1.DesiredPolicies) string {
	rec.V = v1alpha1.RecordVersion

	if rec.Policies != nil {
		rec.Policies = canonical(rec.Policies)
	}

	if rec.Mode != v1alpha1.ModeAudit {
		rec.Mode = ""
	}

	raw, _ := json.Marshal(rec) //nolint:errchkjson // It is of texts.

	return string(raw)
}

// FormatPolicies writes it of a Composition that asks for a set, none to pause the resource.
func FormatPolicies(set []string) string {
	return FormatDesired(v1alpha1.DesiredPolicies{Policies: canonical(set)})
}

// Paused is the record of a Composition that pauses a managed resource of which it asked for something before: less than all
// actions is recorded, for the end of the pause asks for no more by itself.
func Paused(rec v1alpha1.DesiredPolicies) v1alpha1.DesiredPolicies {
	if asked := Acting(rec.Policies); len(rec.Policies) > 0 {
		rec.Before = nil
		if len(asked) < len(Acting(Order())) {
			rec.Before = append([]string{ActionObserve}, asked...)
		}
	}

	rec.Policies = []string{}

	return rec
}

// canonical is the only list that is written for a set: * stays, for a provider without support for management policies
// takes no other.
func canonical(set []string) []string {
	if slices.Contains(set, ActionAll) {
		return []string{ActionAll}
	}

	return Normalize(set)
}

// HasDesired reports whether it is recorded of a managed resource which management policies its Composition asks for.
func HasDesired(u *unstructured.Unstructured) bool {
	text := resource.Annotation(u, v1alpha1.AnnotationDesiredPolicies)

	return text != "" && text != NoPolicies && text != NoPoliciesAudit
}

// Texts of a resource that has no gate, and never had one: in mode Hold, and in mode Audit.
const (
	NoPolicies      = `{"v":1}`
	NoPoliciesAudit = `{"v":1,"mode":"Audit"}`
)

// KeepsExternal are the texts by which a Composition does not ask for Delete: with the managed resource, the external
// object is not deleted.
func KeepsExternal() []string {
	var out []string

	for text, rec := range desiredTexts() {
		if rec.Policies != nil && !slices.Contains(Normalize(rec.Policies), ActionDelete) {
			out = append(out, text)
		}
	}

	slices.Sort(out)

	return out
}

// Audited reports whether a managed resource's Composition runs the function in mode Audit, which only reports.
func Audited(u *unstructured.Unstructured) bool {
	rec, err := ParseDesired(u)

	return err == nil && rec.Mode == v1alpha1.ModeAudit
}

// Desired returns what the Composition asked for: what is recorded, or all actions.
func Desired(u *unstructured.Unstructured) ([]string, error) {
	rec, err := ParseDesired(u)
	if err != nil || rec.Policies == nil {
		return Order(), err
	}

	return Normalize(rec.Policies), nil
}
