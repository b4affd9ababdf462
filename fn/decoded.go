// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"hash/maphash"
	"sync"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxDecoded is how many bytes of composed resources are remembered, as [atMostIn] counts them: twice, see [decoded]. In memory they
// take two to three times as many.
const maxDecoded = 8 << 20

// decoded remembers composed resources in their decoded form. Crossplane asks in rounds, and from one run to the next little changes
// of what an XR composes. Many runs read them at once, and none modifies them.
type decoded struct {
	digester digester
	// most is how many bytes late has at most.
	most int

	mu sync.Mutex
	// late are those that were used last. Once these are full they are the former, and the former are forgotten.
	late, former map[decodedKey]decodedObject
	// size of late in bytes.
	size int
}

// decodedKey is a composed resource of an XR, with a digest of what it is decoded from.
type decodedKey struct {
	xr, name string
	digest   uint64
}

// decodedObject is one with the bytes that it counts as.
type decodedObject struct {
	object map[string]any
	size   int
}

func newDecoded(most int) *decoded {
	return &decoded{digester: digester{maphash.MakeSeed()}, most: most, late: map[decodedKey]decodedObject{}}
}

// all decodes composed resources of an XR by its uid.
func (d *decoded) all(xr string, resources map[string]*fnv1.Resource) map[string]*unstructured.Unstructured {
	out := make(map[string]*unstructured.Unstructured, len(resources))

	for name, r := range resources {
		key := decodedKey{xr: xr, name: name, digest: d.digester.optional(r.GetResource())}

		was, ok := d.get(key)
		if !ok {
			was = decodedObject{object: decodeMap(r.GetResource()), size: atMostIn(r.GetResource())}
			d.put(key, was)
		}

		out[name] = &unstructured.Unstructured{Object: was.object}
	}

	return out
}

// get returns one that is remembered, which counts as used; false where none is.
func (d *decoded) get(key decodedKey) (decodedObject, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()

	out, ok := d.late[key]
	if ok {
		return out, true
	}

	if out, ok = d.former[key]; ok {
		d.add(key, out)
	}

	return out, ok
}

// put remembers one.
func (d *decoded) put(key decodedKey, o decodedObject) {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.add(key, o)
}

func (d *decoded) add(key decodedKey, o decodedObject) {
	if d.size+o.size > d.most {
		d.late, d.former, d.size = map[decodedKey]decodedObject{}, d.late, 0
	}

	if o.size <= d.most {
		d.late[key], d.size = o, d.size+o.size
	}
}
