// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/fn"
)

// TestWhatIsSharedIsEncodedAsItIs encodes versions of an object that share most of it, with and without what it was decoded to.
func TestWhatIsSharedIsEncodedAsItIs(t *testing.T) {
	was := composite(t, 1, false).GetDesired().GetResources()["resource-0"].GetResource()
	was.Fields["list"] = toResource(t, map[string]any{"l": []any{"a", "b", map[string]any{"c": "d"}}}).GetResource().GetFields()["l"]
	was.Fields["none"] = structpb.NewNullValue()

	for name, edit := range map[string]func(map[string]any){
		"Same":          func(map[string]any) {},
		"Annotated":     func(o map[string]any) { o["metadata"] = map[string]any{"annotations": map[string]any{"a": "b"}} },
		"AFieldIsAdded": func(o map[string]any) { o["spec"] = with(resource.Map(o, "spec"), "managementPolicies", []any{"*"}) },
		"AFieldIsChanged": func(o map[string]any) {
			o["spec"] = with(resource.Map(o, "spec"), "forProvider", map[string]any{"a": int64(1)})
		},
		"AFieldIsLeftOut": func(o map[string]any) {
			o["spec"] = map[string]any{"forProvider": resource.Map(o, "spec", "forProvider")}
		},
		"AListIsCut": func(o map[string]any) { o["list"] = resource.List(o, "list")[:2] },
		"AListIsElsewhere": func(o map[string]any) {
			o["other"] = o["list"]
			o["list"] = resource.List(o, "list")[1:]
		},
		"AnotherField": func(o map[string]any) { o["none"] = o["list"] },
	} {
		t.Run(name, func(t *testing.T) {
			decoded := fn.Decode(was).Object
			object := maps.Clone(decoded)
			edit(object)

			got, err := fn.Encode(object, was, decoded)
			if err != nil {
				t.Fatal(err)
			}

			want, err := fn.Encode(runtime.DeepCopyJSON(object), &structpb.Struct{}, nil)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-alone, +shared:\n%s", diff)
			}

			if spec := got.GetFields()["spec"]; name == "Same" && spec != was.GetFields()["spec"] {
				t.Error("what is the same is not shared")
			}
		})
	}
}

// with is a map with one more entry.
func with(m map[string]any, key string, v any) map[string]any {
	out := maps.Clone(m)
	out[key] = v

	return out
}
