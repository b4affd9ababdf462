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

// longList is a list with n elements of one manager, the manager's fields, and the desired list. The values
// of elements with keys change.
func longList(kind string, n int) (live, wish []any, fields map[string]any) {
	fields = make(map[string]any, n)

	for i := range n {
		name := fmt.Sprint("element-", i)
		key := fmt.Sprintf("k:{%q:%q}", "name", name)
		e := map[string]any{"name": name, "value": int64(1)}

		switch kind {
		case "set":
			live, wish = append(live, name), append(wish, name)
			fields[fmt.Sprintf("v:%q", name)] = map[string]any{}

			continue
		case "shared set", "held set": // Another manager has added as many elements.
			live, wish = append(live, name, "other-"+name), append(wish, name)
			fields[fmt.Sprintf("v:%q", name)] = map[string]any{}

			if kind == "held set" && i == n-1 { // No allowance allows one more.
				wish = append(wish, "new")
			}

			continue
		case "defaults": // The desired state leaves a key out that has a default.
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
		longer = 8
		most   = 3 * longer
	)

	// A set is read so fast that the square of its length shows only in a long one.
	for kind, short := range map[string]int{"keys": 500, "defaults": 500, "set": 4000, "shared set": 500, "held set": 2000} {
		t.Run(kind, func(t *testing.T) {
			took := func(n int) time.Duration {
				live, wish, fields := longList(kind, n)

				req := requestFor(t, edit(t, steadyXR, "ALLOWANCES", "[]"), "", "")
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
			t.Logf("%d elements took %s, and %d took %s", short, few, short*longer, many)

			if few = max(few, time.Millisecond); many > most*few {
				t.Errorf("%d times as many elements took %d times as long", longer, many/few)
			}
		})
	}
}
