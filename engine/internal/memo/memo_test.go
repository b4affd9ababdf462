// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package memo_test

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/engine/internal/memo"
)

// TestDifferentObjectsAreCompiledAtOnce and each of them once.
func TestDifferentObjectsAreCompiledAtOnce(t *testing.T) {
	const objects, callers = 2, 3

	var (
		mu       sync.Mutex
		compiled = map[string]int{}
		meet     = make(chan struct{})
	)

	m := memo.New("Thing", func(name string) (string, field.ErrorList) {
		mu.Lock()

		compiled[name]++
		if len(compiled) == objects {
			close(meet)
		}

		mu.Unlock()

		select {
		case <-meet: // The other one is being compiled, too.
			return name, nil
		case <-time.After(10 * time.Second):
			return name, field.ErrorList{field.Invalid(field.NewPath("spec"), name, "nothing else is compiled meanwhile")}
		}
	})

	var all sync.WaitGroup

	for _, name := range []string{"a", "b"} {
		for range callers {
			all.Go(func() {
				if got, err := m.Get(name, name, name); err != nil || got != name {
					t.Errorf("Get(%q): %q, %v", name, got, err)
				}
			})
		}
	}

	all.Wait()

	for name, times := range compiled {
		if times != 1 {
			t.Errorf("%q was compiled %d times, want once", name, times)
		}
	}
}
