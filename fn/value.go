// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decode makes an object of protobuf's form of JSON, with whole numbers as
// int64, as the API server's decoder makes them: protobuf knows floats only.
func decode(st *structpb.Struct) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: decodeMap(st)}
}

func decodeMap(st *structpb.Struct) map[string]any {
	out := make(map[string]any, len(st.GetFields()))
	for key, v := range st.GetFields() {
		out[key] = decodeValue(v)
	}

	return out
}

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
// is nearly everything.
func encode(obj map[string]any, was *structpb.Struct) (*structpb.Struct, error) {
	out, _, err := encodeMap(obj, was)

	return out, err
}

// encodeMap returns a map's form, and whether it is the one it had.
func encodeMap(m map[string]any, was *structpb.Struct) (*structpb.Struct, bool, error) {
	fields := make(map[string]*structpb.Value, len(m))
	same := was != nil && len(m) == len(was.GetFields())

	for key, v := range m {
		old := was.GetFields()[key]

		e, kept, err := encodeValue(v, old)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", key, err)
		}

		fields[key] = e
		same = same && kept
	}

	if same {
		return was, true, nil
	}

	return &structpb.Struct{Fields: fields}, false, nil
}

func encodeValue(v any, was *structpb.Value) (out *structpb.Value, same bool, err error) {
	switch t := v.(type) {
	case map[string]any:
		st, kept, err := encodeMap(t, was.GetStructValue())
		if err != nil || kept {
			return was, kept, err
		}

		return structpb.NewStructValue(st), false, nil
	case []any:
		list, kept, err := encodeList(t, was.GetListValue())
		if err != nil || kept {
			return was, kept, err
		}

		return structpb.NewListValue(list), false, nil
	default:
		if was != nil && decodeValue(was) == v {
			return was, true, nil
		}

		out, err := structpb.NewValue(v)
		if err != nil {
			return nil, false, fmt.Errorf("cannot encode: %w", err)
		}

		return out, false, nil
	}
}

func encodeList(list []any, was *structpb.ListValue) (*structpb.ListValue, bool, error) {
	values := make([]*structpb.Value, len(list))
	same := was != nil && len(list) == len(was.GetValues())

	for i, v := range list {
		var old *structpb.Value
		if i < len(was.GetValues()) {
			old = was.GetValues()[i]
		}

		e, kept, err := encodeValue(v, old)
		if err != nil {
			return nil, false, fmt.Errorf("[%d]: %w", i, err)
		}

		values[i] = e
		same = same && kept
	}

	if same {
		return was, true, nil
	}

	return &structpb.ListValue{Values: values}, false, nil
}
