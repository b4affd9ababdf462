// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

func TestAParentIsBehindThatItsChildsWriterSawNewer(t *testing.T) {
	const (
		seen  = "[{field: spec.size, generation: 8, initiator: hans, trace: [{kind: XDatabase, name: x, generation: 24, field: spec.size}]}]"
		other = "[{field: spec.size, generation: 8, initiator: hans, trace: [{kind: XDatabase, name: y, generation: 99, field: spec.size}]}]"
	)

	child := func(trace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Object"}}
		if trace != "" {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationTrace: trace})
		}

		return u
	}
	parent := func(generation int64) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "XDatabase"}}
		u.SetName("x")
		u.SetGeneration(generation)

		return u
	}

	for name, tc := range map[string]struct {
		reason string
		req    request.Request
		want   bool
	}{
		"Behind":  {"Its writer saw generation 24.", request.Request{Old: child(""), New: child(seen), Parent: parent(23)}, true},
		"New":     {"So for what is made.", request.Request{New: child(seen), Parent: parent(23)}, true},
		"Same":    {"That is the one there is.", request.Request{Old: child(""), New: child(seen), Parent: parent(24)}, false},
		"Before":  {"It said so before.", request.Request{Old: child(seen), New: child(seen), Parent: parent(23)}, false},
		"Other":   {"It came through another.", request.Request{Old: child(""), New: child(other), Parent: parent(23)}, false},
		"None":    {"Its writer says nothing.", request.Request{Old: child(""), New: child(""), Parent: parent(23)}, false},
		"Made up": {"What does not parse says nothing.", request.Request{Old: child(""), New: child("{"), Parent: parent(23)}, false},
		"Root":    {"It has no parent.", request.Request{Old: child(""), New: child(seen)}, false},
		"Deleted": {"It is deleted.", request.Request{Old: child(seen), Parent: parent(23)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := request.Behind(&tc.req); got != tc.want {
				t.Errorf("%s\nBehind: got %t", tc.reason, got)
			}
		})
	}
}
