// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/lru"
)

const (
	// maxAnswers is how many answers are remembered, two or three of each XR. The others are decided each time.
	maxAnswers = 8192
	// rememberedFor is how long an answer is given again.
	rememberedFor = 10 * time.Minute
)

// answers remember of XRs at rest the last request and its answer: Crossplane asks again and again though nothing has changed.
// Only an answer is remembered that does nothing but keep all as it is, and that time makes no difference to. It is given again
// for a request that has the same in each of its fields: the same policies, windows and Enforcements, the same XR, and the same
// observed and desired resources. Crossplane asks in rounds, first without the policies: so the answer of each round is remembered.
type answers struct {
	digester digester
	mu       sync.Mutex
	xrs      *lru.Cache // By what nameOf says.
}

func newAnswers() *answers {
	return &answers{digester: digester{maphash.MakeSeed()}, xrs: lru.New(maxAnswers)}
}

// answer is one that is remembered: what is in it beside the request that it answers.
type answer struct {
	// version of the XR, and digests of the request.
	version    string
	head, body uint64
	// until is when it is decided again.
	until        time.Time
	resources    map[string]*addition
	conditions   []*fnv1.Condition
	requirements *fnv1.Requirements
	// awaited is true of one that is not the last round's.
	awaited bool
}

// addition is what is added to an object that is desired.
type addition struct {
	set map[string]*structpb.Value
	in  map[string]*addition
	// observed are fields that are as they are in the observed object at the same place.
	observed []string
}

// again answers a request that was answered before, with what is counted of it; false where it was not, or is to be decided anew.
func (a *answers) again(req *fnv1.RunFunctionRequest, now time.Time) (*fnv1.RunFunctionResponse, *state, bool) {
	name, version := nameOf(req)

	a.mu.Lock()
	last, _ := a.xrs.Get(name)
	a.mu.Unlock()

	was, ok := last.(*answer)
	if !ok || was.version != version || was.until.Sub(now) < response.DefaultTTL {
		return nil, nil, false
	}

	if !known(req) || a.digester.head(req) != was.head || a.digester.body(req) != was.body {
		return nil, nil, false
	}

	rsp := response.To(req, response.DefaultTTL)
	rsp.Conditions, rsp.Requirements = was.conditions, was.requirements
	rsp.Desired = &fnv1.State{
		Composite: req.GetDesired().GetComposite(), Resources: make(map[string]*fnv1.Resource, len(req.GetDesired().GetResources())),
	}

	for name, r := range req.GetDesired().GetResources() {
		rsp.Desired.Resources[name] = &fnv1.Resource{
			Resource: was.resources[name].to(r.GetResource(), req.GetObserved().GetResources()[name].GetResource()),
			Ready:    r.GetReady(), ConnectionDetails: r.GetConnectionDetails(),
		}
	}

	if was.awaited {
		return rsp, &state{awaited: true}, true
	}

	return rsp, nil, true
}

// remember notes the answer to a request, where it may be given again.
func (a *answers) remember(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, s *state, now time.Time) {
	name, version := nameOf(req)
	if name == "" || version == "" || !known(req) || !s.rests(req, rsp) || s.base.Basis.GoodFor(rememberedFor) < rememberedFor {
		return
	}

	out := &answer{
		version: version, head: a.digester.head(req), body: a.digester.body(req), until: now.Add(rememberedFor),
		resources:  make(map[string]*addition, len(s.names)),
		conditions: rsp.GetConditions(), requirements: rsp.GetRequirements(), awaited: s.awaited,
	}

	var last *addition // As a rule all have the same.

	for resource, r := range rsp.GetDesired().GetResources() {
		added, ok := additionTo(req.GetDesired().GetResources()[resource].GetResource(), r.GetResource(),
			req.GetObserved().GetResources()[resource].GetResource())
		if !ok {
			return
		}

		if reflect.DeepEqual(added, last) {
			added = last
		}

		out.resources[resource], last = added, added
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	a.xrs.Add(name, out)
}

// rests reports whether an XR and all that it composes is as it is to be, so that an answer says nothing but that. What is answered
// without the policies comes to nothing, whatever it says of the XR.
func (s *state) rests(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) bool {
	asking := s.awaited && request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES)
	if s.awaited != asking || !s.settled && !asking || len(s.problems)+len(s.held())+len(s.logging)+len(rsp.GetResults()) > 0 {
		return false
	}

	return !slices.ContainsFunc(s.names, func(name string) bool {
		return s.observed[name] == nil || s.desired[name] == nil || !s.outcomes[name].Rests()
	})
}

// nameOf is the name of what is remembered of a round about an XR, and the XR's version; empty where nothing is.
func nameOf(req *fnv1.RunFunctionRequest) (name, version string) {
	xr := req.GetObserved().GetComposite().GetResource()

	name = metaOf(xr, "uid")
	if name != "" { // Each round brings what the one before has asked for.
		name += "/" + strconv.Itoa(len(sent(req))+len(req.GetRequiredSchemas()))
	}

	return name, metaOf(xr, "resourceVersion")
}

// metaOf is a field of an object's metadata.
func metaOf(object *structpb.Struct, field string) string {
	return object.GetFields()["metadata"].GetStructValue().GetFields()[field].GetStringValue()
}

// additionTo is what one object has beside another one; nil for nothing. False where it lacks something. They share what
// is the same.
func additionTo(was, is, observed *structpb.Struct) (*addition, bool) {
	if was == is {
		return nil, true
	}

	for key := range was.GetFields() {
		if _, still := is.GetFields()[key]; !still {
			return nil, false
		}
	}

	out := &addition{set: map[string]*structpb.Value{}, in: map[string]*addition{}}

	for _, key := range slices.Sorted(maps.Keys(is.GetFields())) {
		v := is.GetFields()[key]
		old, there := was.GetFields()[key]
		seen := observed.GetFields()[key]

		switch {
		case there && old == v:
		case !there && seen != nil && proto.Equal(v, seen):
			out.observed = append(out.observed, key)
		case v.GetStructValue() == nil || there && old.GetStructValue() == nil:
			out.set[key] = v
		default:
			below, ok := additionTo(old.GetStructValue(), v.GetStructValue(), seen.GetStructValue())
			if !ok {
				return nil, false
			}

			out.in[key] = below
		}
	}

	return out, true
}

// to adds it to an object, which stays as it is.
func (a *addition) to(was, observed *structpb.Struct) *structpb.Struct {
	if a == nil {
		return was
	}

	fields := make(map[string]*structpb.Value, len(was.GetFields())+len(a.set)+len(a.in)+len(a.observed))
	maps.Copy(fields, was.GetFields())
	maps.Copy(fields, a.set)

	for _, key := range a.observed {
		fields[key] = observed.GetFields()[key]
	}

	for key, below := range a.in {
		fields[key] = structpb.NewStructValue(below.to(was.GetFields()[key].GetStructValue(), observed.GetFields()[key].GetStructValue()))
	}

	return &structpb.Struct{Fields: fields}
}
