// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Decode decodes an object.
func Decode(st *structpb.Struct) *unstructured.Unstructured { return decode(st) }

// Encode encodes an object. Decoded is what another one was decoded to.
func Encode(object map[string]any, was *structpb.Struct, decoded map[string]any) (*structpb.Struct, error) {
	return encode(object, was, decoded)
}
