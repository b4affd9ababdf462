// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Decoded are the composed resources of a request as the function has them decoded, and Decode decodes one of them.
func (f *Function) Decoded(req *fnv1.RunFunctionRequest) (observed, desired map[string]*unstructured.Unstructured) {
	uid := metaOf(req.GetObserved().GetComposite().GetResource(), "uid")

	return f.decoded.all(uid, req.GetObserved().GetResources()), f.decoded.all(uid, req.GetDesired().GetResources())
}

// Remembered is how many bytes of what is decoded a cache has after the composed resources of requests, of so many at most, and how
// many of these it does not decode again.
func Remembered(most int, requests ...*fnv1.RunFunctionRequest) (bytes, again int) {
	d := newDecoded(most)

	for _, req := range requests {
		d.all("", req.GetObserved().GetResources())
	}

	for _, o := range d.former {
		bytes += o.size
	}

	for _, req := range requests {
		for name, r := range req.GetObserved().GetResources() {
			key := decodedKey{name: name, digest: d.digester.optional(r.GetResource())}
			_, late := d.late[key]

			if _, former := d.former[key]; late || former {
				again++
			}
		}
	}

	return bytes + d.size, again
}
