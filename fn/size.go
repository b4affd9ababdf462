// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	// MaxResponse is how many bytes of a response Crossplane surely reads. It refuses those
	// of more than 4 MiB without saying what is large in them.
	//
	// Source: google.golang.org/grpc clientconn.go, defaultClientMaxReceiveMessageSize, which
	// Crossplane leaves as it is (crossplane v2.2.1, internal/xfn/function_runner.go).
	MaxResponse = 3 << 20

	// maxLargest is how many of the largest resources are named.
	maxLargest = 5
)

// errLarge is the cause when a response has more bytes than Crossplane reads.
var errLarge = errors.New("the desired state is too large for Crossplane to read")

// fits reports, as an error that names the largest resources, that a response is larger
// than is surely read.
func (s *state) fits(rsp *fnv1.RunFunctionResponse, most int) error {
	if atMost(rsp) <= most {
		return nil
	}

	size := proto.Size(rsp)
	if size <= most {
		return nil
	}

	type part struct {
		what string
		size int
	}

	parts := []part{
		{"the composite resource", proto.Size(rsp.GetDesired().GetComposite())}, {"the pipeline's context", proto.Size(rsp.GetContext())},
	}

	for name, r := range rsp.GetDesired().GetResources() {
		u := s.observed[name] // Has a name, which what is desired need not have.
		if u == nil {
			u = s.desired[name]
		}

		parts = append(parts, part{fmt.Sprintf("%q (%s)", name, strings.TrimSpace(u.GetKind()+" "+resource.Name(u))), proto.Size(r)})
	}

	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.what, b.what)) })

	texts := make([]string, 0, maxLargest)
	for _, p := range parts[:min(len(parts), maxLargest)] {
		texts = append(texts, fmt.Sprintf("%s with %s", p.what, kibibytes(p.size)))
	}

	return fmt.Errorf("%w: it has %s, of %s at most; the largest of %d composed resources, and of what else there is, are %s: "+
		"compose smaller ones, or fewer",
		errLarge, kibibytes(size), kibibytes(most), len(rsp.GetDesired().GetResources()), strings.Join(texts, ", "))
}

// kibibytes writes a number of bytes for a person.
func kibibytes(n int) string { return fmt.Sprintf("%d KiB", (n+1023)/1024) }

// atMost is a number of bytes that a response has at most, and in a fraction of the time that it takes to count them.
func atMost(rsp *fnv1.RunFunctionResponse) int {
	out := proto.Size(&fnv1.RunFunctionResponse{
		Meta: rsp.GetMeta(), Results: rsp.GetResults(), Context: rsp.GetContext(), Requirements: rsp.GetRequirements(),
		Conditions: rsp.GetConditions(), Output: rsp.GetOutput(),
	}) + overhead + atMostOf(rsp.GetDesired().GetComposite())

	for name, r := range rsp.GetDesired().GetResources() {
		out += overhead + len(name) + atMostOf(r)
	}

	return out
}

// overhead is what tags and lengths of a value, and of its entry in a map, take at most: four tags, and as many lengths of up to five
// bytes.
const overhead = 24

func atMostOf(r *fnv1.Resource) int {
	out := 2*overhead + atMostIn(r.GetResource())
	for key, v := range r.GetConnectionDetails() {
		out += overhead + len(key) + len(v)
	}

	return out
}

func atMostIn(st *structpb.Struct) int {
	out := 0
	for key, v := range st.GetFields() {
		out += overhead + len(key) + atMostFor(v)
	}

	return out
}

func atMostFor(v *structpb.Value) int {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return len(k.StringValue)
	case *structpb.Value_StructValue:
		return atMostIn(k.StructValue)
	case *structpb.Value_ListValue:
		out := 0
		for _, e := range k.ListValue.GetValues() {
			out += overhead + atMostFor(e)
		}

		return out
	default:
		return 0 // The overhead has room for a number.
	}
}
