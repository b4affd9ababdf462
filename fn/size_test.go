// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kausality-io/kausality-crossplane/fn"
)

func TestAResponseThatCrossplaneCouldNotReadNamesWhatIsLarge(t *testing.T) {
	config := func(name string, size int) *fnv1.Resource {
		return resourceOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}\ndata: {text: "+strings.Repeat("x", size)+"}")
	}

	const mebibyte = 1 << 20

	for name, tc := range map[string]struct {
		reason string
		size   int
		want   string
	}{
		"Fits": {reason: "Somewhat less than 3 MiB is answered.", size: mebibyte - 10_000},
		"Large": {
			reason: "More is not, and what is large is named.", size: mebibyte,
			want: `the desired state is too large for Crossplane to read: it has 3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := call(t, "apiVersion: example.org/v1\nkind: XDatabase\nmetadata: {name: db}", "", "", "")
			req.Desired.Resources = map[string]*fnv1.Resource{"small": config("small", 10)}

			for _, name := range []string{"a", "b", "c"} {
				req.Desired.Resources[name] = config(name, tc.size)
			}

			rsp := run(t, req)

			fatal := ""

			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					fatal = r.GetMessage()
				}
			}

			if !strings.HasPrefix(fatal, tc.want) || (fatal == "") != (tc.want == "") {
				t.Errorf("%s\nfatal: %q", tc.reason, fatal)
			}

			if tc.want == "" {
				return
			}

			if !strings.Contains(fatal, `of 3072 KiB at most; the largest of 4 composed resources, and of what else there is, are `+
				`"a" (ConfigMap a) with 1025 KiB, "b" (ConfigMap b) with 1025 KiB, "c" (ConfigMap c) with 1025 KiB, `) || len(rsp.GetDesired().GetResources()) > 0 {
				t.Errorf("it says %q, and desires %d", fatal, len(rsp.GetDesired().GetResources()))
			}
		})
	}
}

// TestSizesAreNotUnderestimated compares with what protobuf counts.
func TestSizesAreNotUnderestimated(t *testing.T) {
	long := strings.Repeat("x", 1<<20)

	for name, rsp := range map[string]*fnv1.RunFunctionResponse{
		"Nothing":  {},
		"AtRest":   called(t, composite(t, 3, false)),
		"Changed":  called(t, composite(t, 3, true)),
		"Scalars":  desires(map[string]any{"a": 1.5, "b": true, "c": nil, "d": "", "": map[string]any{}, "e": []any{}}),
		"Lists":    desires(map[string]any{"a": []any{1.0, 2.0, []any{map[string]any{"b": nil}, "c", false}}}),
		"Long":     desires(map[string]any{"a": long, "b": map[string]any{"c": []any{long, map[string]any{long: long}}}}),
		"Deep":     desires(deep(100)),
		"Messages": {Results: []*fnv1.Result{{Message: long}}, Conditions: []*fnv1.Condition{{Type: "A", Reason: long}}},
		"Details": {Desired: &fnv1.State{
			Composite: &fnv1.Resource{ConnectionDetails: map[string][]byte{"k": []byte(long)}, Ready: fnv1.Ready_READY_TRUE},
			Resources: map[string]*fnv1.Resource{"": {Ready: fnv1.Ready_READY_FALSE}, long: {ConnectionDetails: map[string][]byte{"": nil}}},
		}},
	} {
		if most, size := fn.AtMost(rsp), proto.Size(rsp); most < size {
			t.Errorf("%s: at most %d, want %d or more", name, most, size)
		}
	}
}

// desires is a response that desires an object.
func desires(object map[string]any) *fnv1.RunFunctionResponse {
	st, err := structpb.NewStruct(object)
	if err != nil {
		panic(err)
	}

	return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"a": {Resource: st}}}}
}

// deep is an object of so many levels, of objects and lists in turns.
func deep(levels int) map[string]any {
	if levels == 0 {
		return nil
	}

	return map[string]any{"": []any{deep(levels - 1)}}
}
