// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// decode makes an object of protobuf's form of JSON, with whole numbers as
// int64, as the API server's decoder makes them: protobuf knows floats only.
func decode(st *structpb.Struct) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: decodeMap(st)}
}

func decodeMap(st *structpb.Struct) map[string]any {
	out := make(map[string]any, len(st.GetFields()))

	for key, v := range st.GetFields() {
		if key == "fieldsV1" {
			out[key] = decodeFields(v)
		} else {
			out[key] = decodeValue(v)
		}
	}

	return out
}

// decodeFields makes an object of fields that somebody manages. Nearly all that is in it has nothing in it, and is one and the same
// object here: nobody writes into what is observed.
func decodeFields(v *structpb.Value) any {
	st := v.GetStructValue()
	if st == nil {
		return decodeValue(v)
	}

	out := make(map[string]any, len(st.GetFields()))

	for key, v := range st.GetFields() {
		if below := v.GetStructValue(); below != nil && len(below.GetFields()) == 0 {
			out[key] = nothing
		} else {
			out[key] = decodeFields(v)
		}
	}

	return out
}

// nothing is an object with nothing in it, not to be modified.
var nothing any = map[string]any{} //nolint:gochecknoglobals // Constant.

func decodeValue(v *structpb.Value) any {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_NumberValue:
		return number(k.NumberValue)
	case *structpb.Value_BoolValue:
		return k.BoolValue
	case *structpb.Value_StructValue:
		return decodeMap(k.StructValue)
	case *structpb.Value_ListValue:
		out := make([]any, len(k.ListValue.GetValues()))
		for i, e := range k.ListValue.GetValues() {
			out[i] = decodeValue(e)
		}

		return out
	default:
		return nil
	}
}

// number is a whole number as int64. What is out of range converts differently
// on different machines, and stays a float.
func number(f float64) any {
	if f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 {
		return int64(f)
	}

	return f
}

// encode makes protobuf's form of an object. It shares all that is the same
// with another one, which an earlier step of the pipeline made: as a rule that
// is nearly everything. Decoded is what that one was decoded to, with which the object
// shares as much.
func encode(obj map[string]any, was *structpb.Struct, decoded map[string]any) (*structpb.Struct, error) {
	return encodeEntries(obj, was, decoded) // It has our annotations, and so is another one.
}

func encodeEntries(m map[string]any, was *structpb.Struct, decoded map[string]any) (*structpb.Struct, error) {
	fields := make(map[string]*structpb.Value, len(m))

	for key, v := range m {
		e, err := encodeValue(v, was.GetFields()[key], decoded[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}

		fields[key] = e
	}

	return &structpb.Struct{Fields: fields}, nil
}

func encodeValue(v any, was *structpb.Value, decoded any) (*structpb.Value, error) {
	if was != nil && sameValue(v, was, decoded) {
		return was, nil
	}

	switch t := v.(type) {
	case map[string]any:
		below, _ := decoded.(map[string]any)
		st, err := encodeEntries(t, was.GetStructValue(), below)

		return structpb.NewStructValue(st), err
	case []any:
		list, err := encodeList(t, was.GetListValue())

		return structpb.NewListValue(list), err
	default:
		out, err := structpb.NewValue(v)
		if err != nil {
			return nil, fmt.Errorf("cannot encode: %w", err)
		}

		return out, nil
	}
}

func encodeList(list []any, was *structpb.ListValue) (*structpb.ListValue, error) {
	values := make([]*structpb.Value, len(list))

	for i, v := range list {
		var old *structpb.Value
		if i < len(was.GetValues()) {
			old = was.GetValues()[i]
		}

		e, err := encodeValue(v, old, nil)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}

		values[i] = e
	}

	return &structpb.ListValue{Values: values}, nil
}

func sameMap(m map[string]any, was *structpb.Struct, decoded map[string]any) bool {
	if len(m) != len(was.GetFields()) {
		return false
	}

	for key, v := range m {
		old, ok := was.GetFields()[key]
		if !ok || !sameValue(v, old, decoded[key]) {
			return false
		}
	}

	return true
}

// sameValue reports whether a value has a form already. Decoded is what that one is decoded to, as far as that is known.
func sameValue(v any, was *structpb.Value, decoded any) bool {
	if change.Shared(v, decoded) {
		return true
	}

	switch t := v.(type) {
	case map[string]any:
		st, ok := was.GetKind().(*structpb.Value_StructValue)
		below, _ := decoded.(map[string]any)

		return ok && sameMap(t, st.StructValue, below)
	case []any:
		list, ok := was.GetKind().(*structpb.Value_ListValue)

		return ok && slices.EqualFunc(t, list.ListValue.GetValues(), func(v any, was *structpb.Value) bool { return sameValue(v, was, nil) })
	case string:
		s, ok := was.GetKind().(*structpb.Value_StringValue)

		return ok && s.StringValue == t
	case int64, float64:
		n, ok := was.GetKind().(*structpb.Value_NumberValue)

		return ok && number(n.NumberValue) == v
	case bool:
		b, ok := was.GetKind().(*structpb.Value_BoolValue)

		return ok && b.BoolValue == t
	case nil:
		_, ok := was.GetKind().(*structpb.Value_NullValue)

		return ok
	default:
		return false
	}
}
