// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEverythingThatDecidesABuildChangesItsKey(t *testing.T) {
	base := tool{name: "a", pkg: "example.org/a", ldflags: "-X v=1", substitutions: []substitution{{module: "m", file: "f", old: "o", new: "n"}}}
	key := func(change func(*tool), in ...string) string {
		c := base
		c.substitutions = append([]substitution(nil), base.substitutions...)
		if change != nil {
			change(&c)
		}
		return cacheKey(c, in[0], in[1], in[2], in[3])
	}
	in := []string{"go1.26.0", "linux/amd64", "module a", "sums"}
	want := key(nil, in...)
	if got := key(nil, in...); got != want {
		t.Fatalf("the key of the same build changes: %s, %s", want, got)
	}
	cases := map[string]string{
		"Go version":    key(nil, "go1.26.1", in[1], in[2], in[3]),
		"Platform":      key(nil, in[0], "linux/arm64", in[2], in[3]),
		"GoMod":         key(nil, in[0], in[1], "module b", in[3]),
		"GoSum":         key(nil, in[0], in[1], in[2], "other"),
		"Boundary":      key(nil, in[0], in[1], in[2]+"s", "ums"),
		"Package":       key(func(c *tool) { c.pkg = "example.org/b" }, in...),
		"LDFlags":       key(func(c *tool) { c.ldflags = "" }, in...),
		"Substitution":  key(func(c *tool) { c.substitutions[0].new = "other" }, in...),
		"Substitutions": key(func(c *tool) { c.substitutions = nil }, in...),
		"Assets":        key(func(c *tool) { c.assets = map[string]string{assetCRDs: "crds"} }, in...),
	}
	for name, got := range cases {
		if got == want {
			t.Errorf("%s: the key does not change", name)
		}
	}
}

func TestTwoWhoAddTheSameEntryFillItOnce(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var filled atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			err := c.add(t.Context(), "tool", "key", func(dir string) error {
				filled.Add(1)
				return os.WriteFile(filepath.Join(dir, "tool"), nil, 0o600)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := filled.Load(); got != 1 {
		t.Errorf("filled %d times, want once", got)
	}
	if !c.has("tool", "key") {
		t.Error("the entry is not there")
	}
}

func TestAFailedEntryLeavesNothing(t *testing.T) {
	c := cache{dir: t.TempDir()}
	want := errors.New("boom")
	if err := c.add(t.Context(), "tool", "key", func(string) error { return want }); !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
	left, err := filepath.Glob(filepath.Join(c.dir, "tool", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || filepath.Base(left[0]) != "lock" {
		t.Errorf("left: %v", left)
	}
}

func TestALockIsWaitedForAsLongAsTheContextLasts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
	unlock()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
