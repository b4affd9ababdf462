// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"hash/maphash"
	"math"
	"math/bits"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// digester makes digests of requests, which are good for one process. Requests that differ have different ones, but for a chance
// of 1 in 2^64. It reads a request where it is, without decoding it.
type digester struct{ seed maphash.Seed }

// Kinds of values: two of different kinds differ.
const (
	ofNull uint64 = iota + 1
	ofNumber
	ofString
	ofBool
	ofStruct
	ofList
	ofBytes
	ofResource
	ofItems
	ofCredentials
	ofSchema
)

// known reports whether a request itself has no fields but those that are read here; its parts may.
func known(req *fnv1.RunFunctionRequest) bool { return len(req.ProtoReflect().GetUnknown()) == 0 }

// head is a digest of all that is in a request, but for its composed resources, see body, and its tag, which Crossplane makes of
// the rest.
func (d digester) head(req *fnv1.RunFunctionRequest) uint64 {
	var capabilities uint64
	for _, c := range req.GetMeta().GetCapabilities() {
		capabilities = mix(capabilities, uint64(c)) //nolint:gosec // A number of an enum.
	}

	parts := []uint64{
		capabilities, d.resource(req.GetObserved().GetComposite()), d.resource(req.GetDesired().GetComposite()),
		d.optional(req.GetInput()), d.optional(req.GetContext()),
		entries(d, req.GetExtraResources(), d.items), //nolint:staticcheck // What older versions of Crossplane send.
		entries(d, req.GetRequiredResources(), d.items), entries(d, req.GetCredentials(), d.credentials),
		entries(d, req.GetRequiredSchemas(), d.schema),
	}

	var out uint64
	for _, p := range parts {
		out = mix(out, p)
	}

	return out
}

// body is a digest of the composed resources of a request.
func (d digester) body(req *fnv1.RunFunctionRequest) uint64 {
	return mix(entries(d, req.GetObserved().GetResources(), d.resource), entries(d, req.GetDesired().GetResources(), d.resource))
}

func (d digester) resource(r *fnv1.Resource) uint64 {
	if r == nil {
		return 0
	}

	ready := uint64(r.GetReady()) //nolint:gosec // A number of an enum.

	return mix(mix(ofResource, ready), mix(d.optional(r.GetResource()), entries(d, r.GetConnectionDetails(), d.bytes)))
}

func (d digester) items(r *fnv1.Resources) uint64 {
	out := ofItems
	for _, item := range r.GetItems() {
		out = mix(out, d.resource(item))
	}

	return out
}

func (d digester) credentials(c *fnv1.Credentials) uint64 {
	return mix(ofCredentials, entries(d, c.GetCredentialData().GetData(), d.bytes))
}

func (d digester) schema(s *fnv1.Schema) uint64 { return mix(ofSchema, d.optional(s.GetOpenapiV3())) }

func (d digester) bytes(b []byte) uint64 { return mix(ofBytes, maphash.Bytes(d.seed, b)) }

// optional is of what may not be there.
func (d digester) optional(st *structpb.Struct) uint64 {
	if st == nil {
		return 0
	}

	return d.object(st)
}

func (d digester) object(st *structpb.Struct) uint64 {
	var sum uint64
	for key, v := range st.GetFields() {
		sum += mix(maphash.String(d.seed, key), d.value(v)) // In any order.
	}

	return mix(mix(ofStruct, uint64(len(st.GetFields()))), sum)
}

func (d digester) value(v *structpb.Value) uint64 {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return mix(ofString, maphash.String(d.seed, k.StringValue))
	case *structpb.Value_NumberValue:
		return mix(ofNumber, math.Float64bits(k.NumberValue))
	case *structpb.Value_BoolValue:
		if k.BoolValue {
			return mix(ofBool, 1)
		}

		return ofBool
	case *structpb.Value_StructValue:
		return d.object(k.StructValue)
	case *structpb.Value_ListValue:
		out := mix(ofList, uint64(len(k.ListValue.GetValues())))
		for _, e := range k.ListValue.GetValues() {
			out = mix(out, d.value(e))
		}

		return out
	default:
		return ofNull
	}
}

// entries is of a map, in any order.
func entries[V any](d digester, m map[string]V, of func(V) uint64) uint64 {
	var sum uint64
	for key, v := range m {
		sum += mix(maphash.String(d.seed, key), of(v))
	}

	return mix(uint64(len(m)), sum)
}

// mix makes one number of two, of which each bit depends on all of theirs, and on their order.
//
// Source: the multiplication of wyhash, https://github.com/wangyi-fudan/wyhash.
func mix(a, b uint64) uint64 {
	const one, two = 0xa0761d6478bd642f, 0xe7037ed1a0b428db

	high, low := bits.Mul64(a^one, b^two)

	return high ^ bits.RotateLeft64(low, 1) ^ a
}
