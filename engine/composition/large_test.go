// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// used is how much of a processor the process had so far: a busy machine does not
// change that much.
func used(tb testing.TB) time.Duration {
	tb.Helper()

	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}

	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// longList is a list of n elements, their manager's fields, and what is wished of
// it: with another value in each, where elements have keys.
func longList(kind string, n int) (live, wish []any, fields map[string]any) {
	fields = make(map[string]any, n)

	for i := range n {
		name := fmt.Sprint("element-", i)

		if kind == "set" {
			live, wish = append(live, name), append(wish, name)
			fields[fmt.Sprintf("v:%q", name)] = map[string]any{}

			continue
		}

		key := fmt.Sprintf("k:{%q:%q}", "name", name)
		e := map[string]any{"name": name, "value": int64(1)}

		if kind == "defaults" { // The wish leaves a key out that has one.
			key = fmt.Sprintf(`k:{"name":%q,"protocol":"TCP"}`, name)
			e["protocol"] = "TCP"
		}

		live, wish = append(live, e), append(wish, map[string]any{"name": name, "value": int64(2)})
		fields[key] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
	}

	return live, wish, fields
}

// TestALongListTakesNoLongerThanItIs decides about a list, and about one that is
// eight times as long. Were each element compared with each, that took 64 times as
// long.
func TestALongListTakesNoLongerThanItIs(t *testing.T) {
	const (
		short  = 500
		longer = 8
		most   = 3 * longer
	)

	for _, kind := range []string{"keys", "defaults", "set"} {
		t.Run(kind, func(t *testing.T) {
			took := func(n int) time.Duration {
				live, wish, fields := longList(kind, n)

				req := request(t, edit(t, steadyXR, "ALLOWANCES", "[]"), "", "")
				req.Observed = &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Rack", "spec": map[string]any{"list": live},
					"metadata": map[string]any{"name": "r", "managedFields": []any{map[string]any{
						"manager": managedfields.ManagerOf(req.XR), "operation": "Apply", "apiVersion": "v1",
						"fieldsV1": map[string]any{"f:spec": map[string]any{"f:list": fields}},
					}}},
				}}
				req.Desired = &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Rack", "spec": map[string]any{"list": wish},
				}}

				best := time.Hour

				for range 3 {
					start := used(t)
					out := composition.Decide(req)
					best = min(best, used(t)-start)

					if got := len(resource.List(out.Desired.Object, "spec", "list")); got != n {
						t.Fatalf("%d elements are desired, want %d", got, n)
					}
				}

				return best
			}

			few, many := took(short), took(short*longer)
			if few = max(few, time.Millisecond); many > most*few {
				t.Errorf("%d elements took %s, and %d took %s", short, few, short*longer, many)
			}
		})
	}
}
