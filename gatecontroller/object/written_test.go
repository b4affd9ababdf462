// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheCacheIsBehindUntilItShowsOurWrite(t *testing.T) {
	w, start := &Expectations{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	w.Expect("a", "10", start)
	w.Expect("b", "12", start)

	steps := []struct {
		reason, uid, version string
		after, want          time.Duration
	}{
		{reason: "Nothing was written.", uid: "c", version: "9"},
		{reason: "A version from before the write is behind.", uid: "a", version: "9", want: catchUp},
		{reason: "It stays behind until the write shows.", uid: "a", version: "9", after: time.Second, want: catchUp - time.Second},
		{reason: "The write itself is not.", uid: "a", version: "10", after: time.Second},
		{reason: "What has caught up is forgotten.", uid: "a", version: "9", after: time.Second},
		{reason: "A later version is not behind either.", uid: "b", version: "13", after: time.Second},
	}

	for _, s := range steps {
		if got := w.Behind(object(s.uid, s.version), start.Add(s.after)); got != s.want {
			t.Errorf("%s\nbehind: got %s, want %s", s.reason, got, s.want)
		}
	}
}

func TestTheCacheIsNotWaitedForInVain(t *testing.T) {
	w, start := &Expectations{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	w.Expect("a", "10", start)

	if got := w.Behind(object("a", "9"), start.Add(catchUp)); got != 0 {
		t.Errorf("a write that never shows: behind for %s", got)
	}

	w.Expect("a", "10", start)

	if got := w.Behind(object("a", "not a number"), start); got != 0 {
		t.Errorf("versions that cannot be compared: behind for %s", got)
	}
}

func object(uid, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)

	return u
}

func TestWhatIsWrittenIsNotRememberedForEver(t *testing.T) {
	w := &Expectations{}
	for i := range 3 * maxExpected {
		w.Expect(types.UID(strconv.Itoa(i)), "1", time.Time{})
	}

	if n := len(w.versions); n > maxExpected {
		t.Errorf("%d writes are remembered, want at most %d", n, maxExpected)
	}
}
