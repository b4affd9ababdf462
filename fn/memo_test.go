// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/fn"
)

// atRest is a request of an XR at rest, with something in each of its fields.
func atRest(t *testing.T) *fnv1.RunFunctionRequest {
	t.Helper()

	req := composite(t, 2, false)
	req.Context = toResource(t, map[string]any{"apiextensions.crossplane.io/environment": map[string]any{"a": nil, "b": []any{true, 1.5}}}).GetResource()
	req.Input = toResource(t, map[string]any{"mode": "Hold"}).GetResource()
	req.Meta.Capabilities = []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_CONDITIONS}
	req.Credentials = map[string]*fnv1.Credentials{"c": {Source: &fnv1.Credentials_CredentialData{
		CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"k": []byte("v")}},
	}}}
	req.RequiredSchemas = map[string]*fnv1.Schema{"kausality.io/schema/x": {OpenapiV3: toResource(t, map[string]any{"type": "object"}).GetResource()}}
	req.ExtraResources = map[string]*fnv1.Resources{ //nolint:staticcheck // What older versions of Crossplane send.
		"other": {Items: []*fnv1.Resource{toResource(t, map[string]any{"kind": "A"}), toResource(t, map[string]any{"kind": "B"})}},
	}
	req.Observed.Resources["resource-0"].ConnectionDetails = map[string][]byte{"password": []byte("secret")}
	req.Observed.Resources["resource-1"].Ready = fnv1.Ready_READY_TRUE
	req.Desired.Composite = &fnv1.Resource{Resource: toResource(t, map[string]any{"kind": "XDatabase"}).GetResource()}

	return req
}

// TestAnXRAtRestIsAnsweredAgain asks once more, and compares with a function that was never asked.
func TestAnXRAtRestIsAnsweredAgain(t *testing.T) {
	for _, n := range []int{1, 10} {
		f, req := fn.New(logging.NewNopLogger()), composite(t, n, false)
		if f.Again(req) {
			t.Fatal("it is answered before it was asked")
		}

		runOf(t, f, req)

		if !f.Again(req) {
			t.Fatalf("%d resources at rest are decided once more", n)
		}

		req.Meta.Tag = "another one"

		if diff := cmp.Diff(called(t, req), runOf(t, f, req), protocmp.Transform()); diff != "" {
			t.Errorf("%d resources, -decided, +answered again:\n%s", n, diff)
		}
	}
}

// TestEachRoundIsAnsweredAgain asks without policies, as Crossplane does first in each of its runs, and with what was asked for.
func TestEachRoundIsAnsweredAgain(t *testing.T) {
	req := composite(t, 2, false)
	req.Meta.Capabilities = []fnv1.Capability{fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES, fnv1.Capability_CAPABILITY_CONDITIONS}

	first, _ := proto.Clone(req).(*fnv1.RunFunctionRequest)
	first.RequiredResources = nil

	// As after a round that asked for a parameter.
	third, _ := proto.Clone(req).(*fnv1.RunFunctionRequest)
	third.RequiredResources["kausality.io/params/x"] = &fnv1.Resources{}

	f := fn.New(logging.NewNopLogger())

	for range 2 {
		for _, r := range []*fnv1.RunFunctionRequest{first, req, third} {
			if diff := cmp.Diff(called(t, r), runOf(t, f, r), protocmp.Transform()); diff != "" {
				t.Errorf("-decided, +answered again:\n%s", diff)
			}
		}
	}

	if !f.Again(first) || !f.Again(req) || !f.Again(third) {
		t.Errorf("first round again: %t, second: %t, third: %t, want all", f.Again(first), f.Again(req), f.Again(third))
	}

	// Who does not say that it sends them is answered for good.
	first.Meta.Capabilities = nil
	runOf(t, f, first)

	if f.Again(first) {
		t.Error("an answer without policies is given again to one that may never send them")
	}
}

// TestWhatDiffersIsDecided changes each value of a request, each key and each list.
func TestWhatDiffersIsDecided(t *testing.T) {
	f, req := fn.New(logging.NewNopLogger()), atRest(t)
	if rsp := runOf(t, f, req); !f.Again(req) {
		t.Fatalf("it is not at rest: %v", rsp)
	}

	const fewest = 1000

	changed := 0

	for ; ; changed++ {
		other, _ := proto.Clone(req).(*fnv1.RunFunctionRequest)

		m := &mutation{left: changed}
		m.message(other.ProtoReflect(), "")

		if m.what == "" {
			break
		}

		if f.Again(other) {
			t.Errorf("answered as before: %s", m.what)
		}
	}

	if changed < fewest {
		t.Errorf("%d changes, want %d at least", changed, fewest)
	}

	if !f.Again(req) {
		t.Error("it is forgotten")
	}
}

// TestFieldsOfARequestAreKnown fails once the protocol has another field: the digest has to have it, too.
func TestFieldsOfARequestAreKnown(t *testing.T) {
	want := map[string]string{
		"RunFunctionRequest": "context credentials desired extra_resources input meta observed required_resources required_schemas",
		"RequestMeta":        "capabilities tag",
		"State":              "composite resources",
		"Resource":           "connection_details ready resource",
		"Resources":          "items",
		"Credentials":        "credential_data",
		"CredentialData":     "data",
		"Schema":             "openapi_v3",
	}

	got := map[string]string{}

	for _, m := range []proto.Message{
		&fnv1.RunFunctionRequest{}, &fnv1.RequestMeta{}, &fnv1.State{}, &fnv1.Resource{}, &fnv1.Resources{}, &fnv1.Credentials{},
		&fnv1.CredentialData{}, &fnv1.Schema{},
	} {
		fields := m.ProtoReflect().Descriptor().Fields()
		names := make([]string, 0, fields.Len())

		for i := range fields.Len() {
			names = append(names, string(fields.Get(i).Name()))
		}

		slices.Sort(names)
		got[string(m.ProtoReflect().Descriptor().Name())] = strings.Join(names, " ")
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields, -want, +got:\n%s", diff)
	}
}

// TestAnAnswerEnds asks as time passes: nobody is given an answer that may be cached for longer than it is good.
func TestAnAnswerEnds(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f, req := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return now })), composite(t, 1, false)
	runOf(t, f, req)

	for _, tc := range []struct {
		after time.Duration
		again bool
	}{{0, true}, {9 * time.Minute, true}, {9*time.Minute + time.Second, false}} {
		now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(tc.after)
		if f.Again(req) != tc.again {
			t.Errorf("after %s: answered again: %t, want %t", tc.after, !tc.again, tc.again)
		}
	}
}

// TestWhatIsUnderWayIsDecided asks of XRs that are not at rest.
func TestWhatIsUnderWayIsDecided(t *testing.T) {
	window := fromYAML(t, `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: soon}
spec:
  serviceAccount: "system:serviceaccount:crossplane-system:crossplane"
  kinds: [{apiGroup: rds.aws.upbound.io, kind: Instance, fields: [spec]}]
  validFrom: "2026-01-01T00:05:00Z"
  validUntil: "2026-01-01T01:00:00Z"
  reason: upgrade
`)

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	later := runtime.DeepCopyJSON(window)
	resource.Map(later, "spec")["validFrom"] = "2026-01-01T00:30:00Z"

	for name, edit := range map[string]func(*fnv1.RunFunctionRequest){
		"Changed": func(req *fnv1.RunFunctionRequest) { proto.Reset(req); proto.Merge(req, composite(t, 2, true)) },
		"Held": func(req *fnv1.RunFunctionRequest) {
			spec := req.GetDesired().GetResources()["resource-0"].GetResource().GetFields()["spec"].GetStructValue().GetFields()
			spec["forProvider"].GetStructValue().Fields["engine"] = structpb.NewStringValue("mysql")
		},
		"Removed": func(req *fnv1.RunFunctionRequest) { delete(req.GetDesired().GetResources(), "resource-0") },
		"Created": func(req *fnv1.RunFunctionRequest) { delete(req.GetObserved().GetResources(), "resource-0") },
		"WindowOpensSoon": func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources["kausality.io/upgradeallowances"] = &fnv1.Resources{Items: []*fnv1.Resource{toResource(t, window)}}
		},
		"AtRest": func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources["kausality.io/upgradeallowances"] = &fnv1.Resources{Items: []*fnv1.Resource{toResource(t, later)}}
		},
		"NoUID": func(req *fnv1.RunFunctionRequest) {
			delete(req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields(), "uid")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, req := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return now })), composite(t, 2, false)
			edit(req)

			rsp := runOf(t, f, req)
			if again, want := f.Again(req), name == "AtRest"; again != want {
				t.Errorf("it is answered again: %t, want %t: %v, %v", again, want, rsp.GetConditions(), rsp.GetResults())
			}
		})
	}
}

func runOf(t *testing.T, f *fn.Function, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	t.Helper()

	rsp, err := f.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}

	return rsp
}

// mutation changes one thing in a message, after as many others are passed over.
type mutation struct {
	left int
	what string
}

// now reports whether it is this thing's turn.
func (m *mutation) now(what string) bool {
	if m.what != "" {
		return false
	}

	m.left--
	if m.left >= 0 {
		return false
	}

	m.what = what

	return true
}

func (m *mutation) message(msg protoreflect.Message, at string) {
	fields := msg.Descriptor().Fields()

	for i := range fields.Len() {
		fd := fields.Get(i)
		if !msg.Has(fd) || fd.Name() == "tag" || fd.Name() == "null_value" { // Of null there is one.
			continue
		}

		at := fmt.Sprintf("%s.%s", at, fd.Name())

		switch {
		case fd.IsMap():
			m.entries(msg, fd, at)
		case fd.IsList():
			m.list(msg, fd, at)
		case fd.Message() != nil:
			m.message(msg.Mutable(fd).Message(), at)
		case m.now(at):
			msg.Set(fd, otherThan(msg.Get(fd), fd))
		}

		if fd.ContainingOneof() == nil && !fd.IsMap() && !fd.IsList() && fd.Message() != nil && m.now("without "+at) {
			msg.Clear(fd)
		}
	}
}

func (m *mutation) entries(msg protoreflect.Message, fd protoreflect.FieldDescriptor, at string) {
	entries := msg.Mutable(fd).Map()

	var keys []string

	entries.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())

		return true
	})

	slices.Sort(keys)

	for _, key := range keys {
		k := protoreflect.ValueOfString(key).MapKey()
		at := fmt.Sprintf("%s[%s]", at, key)

		switch {
		case fd.MapValue().Message() != nil:
			m.message(entries.Mutable(k).Message(), at)
		case m.now(at):
			entries.Set(k, otherThan(entries.Get(k), fd.MapValue()))
		}

		if m.now("renamed " + at) {
			entries.Set(protoreflect.ValueOfString(key+"x").MapKey(), entries.Get(k))
			entries.Clear(k)
		}
	}
}

func (m *mutation) list(msg protoreflect.Message, fd protoreflect.FieldDescriptor, at string) {
	list := msg.Mutable(fd).List()

	for i := range list.Len() {
		switch {
		case fd.Message() != nil:
			m.message(list.Get(i).Message(), fmt.Sprintf("%s[%d]", at, i))
		case m.now(fmt.Sprintf("%s[%d]", at, i)):
			list.Set(i, otherThan(list.Get(i), fd))
		}
	}

	if list.Len() > 1 && !list.Get(0).Equal(list.Get(1)) && m.now("order of "+at) {
		first, second := list.Get(0), list.Get(1)
		list.Set(0, second)
		list.Set(1, first)
	}

	if list.Len() > 0 && m.now("shorter "+at) {
		list.Truncate(list.Len() - 1)
	}
}

// otherThan is a value with one bit or byte changed.
func otherThan(v protoreflect.Value, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String() + "x")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(append(slices.Clone(v.Bytes()), 0))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(v.Enum() + 1)
	default:
		return protoreflect.ValueOfFloat64(v.Float() + 1)
	}
}
