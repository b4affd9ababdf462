// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestTheFunctionShowsNoCredential puts objects with credentials to the function
// in each mode, and searches for them in all that it says beside the objects.
func TestTheFunctionShowsNoCredential(t *testing.T) {
	all, err := corpus.Planting()
	if err != nil {
		t.Fatal(err)
	}

	asked := 0

	for _, s := range all {
		if s.Request == nil || s.Parent == nil || s.Parent.GetKind() != "XDatabase" {
			continue // A function composes for an XR.
		}

		asked++

		for _, mode := range []string{"Hold", "Audit", "Fatal"} {
			t.Run(s.Name+"/"+mode, func(t *testing.T) {
				decided, _ := s.Decision()
				req := composing(t, s)
				req.Input = toResource(t, map[string]any{
					"apiVersion": "kausality.io/v1alpha1", "kind": "Input", "mode": mode,
				}).GetResource()

				var said []string

				log := funcr.New(func(prefix, args string) { said = append(said, prefix+args) }, funcr.Options{Verbosity: 10})

				rsp, err := fn.New(logging.NewLogrLogger(log), fn.WithClock(func() time.Time { return decided.Basis.Now })).RunFunction(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}

				for _, c := range rsp.GetConditions() {
					said = append(said, protojson.Format(c))
				}

				for _, r := range rsp.GetResults() {
					said = append(said, protojson.Format(r))
				}

				for _, r := range rsp.GetDesired().GetResources() {
					said = append(said, corpus.Ours(&unstructured.Unstructured{Object: r.GetResource().AsMap()}))
				}

				if len(said) == 0 {
					t.Fatal("it says nothing")
				}

				for _, text := range said {
					if corpus.Leaks(text) {
						t.Errorf("it tells a credential: %s", text)
					}
				}
			})
		}
	}

	if asked < 5 {
		t.Errorf("%d scenarios were put to the function, want at least 5", asked)
	}
}
