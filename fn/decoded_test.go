// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// checkDecoded compares what a function remembers of composed resources with what they are.
func checkDecoded(t *testing.T, what string, f *fn.Function, req *fnv1.RunFunctionRequest) {
	t.Helper()

	observed, desired := f.Decoded(req)

	for list, got := range map[*fnv1.State]map[string]*unstructured.Unstructured{req.GetObserved(): observed, req.GetDesired(): desired} {
		if len(got) != len(list.GetResources()) {
			t.Errorf("%s: %d resources, want %d", what, len(got), len(list.GetResources()))
		}

		for name, r := range list.GetResources() {
			if want := fn.Decode(r.GetResource()); !reflect.DeepEqual(got[name], want) {
				t.Errorf("%s: %s, -is, +remembered:\n%s", what, name, cmp.Diff(want, got[name]))
			}
		}
	}
}

// TestWhatDiffersIsDecodedAnew changes each value of a request, each key and each list.
func TestWhatDiffersIsDecodedAnew(t *testing.T) {
	f, req := fn.New(logging.NewNopLogger()), atRest(t)
	checkDecoded(t, "as it is", f, req)

	for changed := 0; ; changed++ {
		other, _ := proto.Clone(req).(*fnv1.RunFunctionRequest)

		m := &mutation{left: changed}
		m.message(other.ProtoReflect(), "")

		if m.what == "" {
			break
		}

		checkDecoded(t, m.what, f, other)
	}
}

// TestADecodedResourceIsNotModified runs the function for every scenario that Crossplane can put to it, and for an XR that changes.
func TestADecodedResourceIsNotModified(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range all {
		if !composes(s) {
			continue
		}

		basis, _ := s.Decision()
		f := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return basis.Basis.Now }))
		req := composing(t, s)

		for range 2 {
			runOf(t, f, req)
			checkDecoded(t, s.Name, f, req)
		}
	}

	f, req := fn.New(logging.NewNopLogger()), composite(t, 3, true)
	delete(req.GetDesired().GetResources(), "resource-1")
	delete(req.GetObserved().GetResources(), "resource-2")
	runOf(t, f, req)
	checkDecoded(t, "changed, removed and created", f, req)
}

// TestRunsShareDecodedResources asks at the same time for the same XR, and for others with resources of the same names.
func TestRunsShareDecodedResources(t *testing.T) {
	f, first := fn.New(logging.NewNopLogger()), composite(t, 3, true)
	want := called(t, first)

	var wg sync.WaitGroup

	for i := range 8 {
		req, _ := proto.Clone(first).(*fnv1.RunFunctionRequest)
		if i%2 == 1 {
			meta := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()
			meta["uid"] = structpb.NewStringValue(strconv.Itoa(i))
		}

		wg.Go(func() {
			for range 3 {
				if diff := cmp.Diff(want, runOf(t, f, req), protocmp.Transform()); i%2 == 0 && diff != "" {
					t.Errorf("-alone, +beside others:\n%s", diff)
				}
			}
		})
	}

	wg.Wait()
}

// TestSoMuchIsRememberedOfWhatIsDecoded decodes more than there is room for.
func TestSoMuchIsRememberedOfWhatIsDecoded(t *testing.T) {
	one := composite(t, 1, false)

	requests := make([]*fnv1.RunFunctionRequest, 20)
	for i := range requests {
		req, _ := proto.Clone(one).(*fnv1.RunFunctionRequest)
		r := req.GetObserved().GetResources()["resource-0"]
		req.Observed.Resources = map[string]*fnv1.Resource{"resource-" + strconv.Itoa(i): r}
		requests[i] = req
	}

	size, _ := fn.Remembered(1<<20, one)

	for name, tc := range map[string]struct {
		reason      string
		most        int
		atMost      int
		fewest, all int
	}{
		"Room":    {"All are remembered where there is room.", 20 * size, 20 * size, 20, 20},
		"Little":  {"Those of late are remembered, and some of the former.", 5 * size, 10 * size, 5, 10},
		"None":    {"One that has no room is not remembered.", size - 1, 0, 0, 0},
		"One":     {"The last one is, and the one before.", size, 2 * size, 1, 2},
		"Nothing": {"Without room nothing is.", 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, again := fn.Remembered(tc.most, requests...)
			if bytes > tc.atMost || again < tc.fewest || again > tc.all {
				t.Errorf("%s %d bytes of %d resources, want at most %d, and %d to %d", tc.reason, bytes, again, tc.atMost, tc.fewest, tc.all)
			}
		})
	}
}
