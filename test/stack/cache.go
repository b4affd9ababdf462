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
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// envCache names the environment variable that says where built tools are kept.
const envCache = "KAUSALITY_CACHE"

// A cache keeps built tools: <dir>/<tool>/<key>/<binary>, with the tool's assets beside the binary. An
// entry is complete once it is there, as it is renamed into place.
type cache struct {
	dir string
}

// newCache returns the cache of this user, outside the tree.
func newCache() (cache, error) {
	dir := os.Getenv(envCache)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return cache{}, fmt.Errorf("cannot find a cache directory, set %s: %w", envCache, err)
		}
		dir = filepath.Join(user, "kausality-crossplane")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "stack"))
	if err != nil {
		return cache{}, fmt.Errorf("cannot find the cache directory: %w", err)
	}
	return cache{dir: dir}, nil
}

// entry returns the directory of a tool with that key.
func (c cache) entry(name, key string) string {
	return filepath.Join(c.dir, name, key)
}

// has reports whether that entry is there.
func (c cache) has(name, key string) bool {
	_, err := os.Stat(c.entry(name, key))
	return err == nil
}

// add has fill write a new directory and makes it the entry, unless somebody else does first. The lock
// is per tool, so two who build at once build nothing twice.
func (c cache) add(ctx context.Context, name, key string, fill func(dir string) error) error {
	parent := filepath.Join(c.dir, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("cannot create cache of %q: %w", name, err)
	}
	unlock, err := lock(ctx, filepath.Join(parent, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if c.has(name, key) {
		return nil
	}
	partial, err := os.MkdirTemp(parent, "partial-*")
	if err != nil {
		return fmt.Errorf("cannot create cache of %q: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(partial) }()
	if err := fill(partial); err != nil {
		return err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return fmt.Errorf("cannot add %q to the cache: %w", name, err)
	}
	if err := os.Rename(partial, c.entry(name, key)); err != nil {
		return fmt.Errorf("cannot add %q to the cache: %w", name, err)
	}
	return nil
}

// cacheKey is short and made of everything that decides what comes out of a build.
func cacheKey(t tool, goVersion, platform, goMod, goSum string) string {
	h := keyHash{sha256.New()}
	h.add(goVersion, platform, goMod, goSum, t.pkg, t.ldflags)
	for _, s := range t.substitutions {
		h.add(s.module+"/"+s.file, s.old, s.new)
	}
	for _, to := range []string{assetCRDs, assetWebhooks} {
		h.add(t.assets[to])
	}
	return h.key()
}

// A keyHash makes a key of parts: another one where any part, their order or their boundaries differ.
type keyHash struct{ hash.Hash }

func (h keyHash) add(parts ...string) {
	for _, s := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
}

func (h keyHash) key() string { return hex.EncodeToString(h.Sum(nil))[:16] }

// lockPoll is how often a lock somebody else has is tried again.
const lockPoll = 200 * time.Millisecond

// lock takes the lock of that file, waiting for it as long as ctx lasts. The kernel releases it should
// this process die.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	err = wait.PollUntilContextCancel(ctx, lockPoll, true, func(context.Context) (bool, error) {
		return tryLock(f)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, closeWith(f, err))
	}
	return func() { _ = f.Close() }, nil
}

// closeWith closes c on the way out with err.
func closeWith(c io.Closer, err error) error {
	_ = c.Close()
	return err
}
