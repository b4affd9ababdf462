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
	w.ExpectAfter("d", "10", start)

	steps := []struct {
		reason, uid, version string
		after                time.Duration
		want                 bool
	}{
		{reason: "Nothing was written.", uid: "c", version: "9"},
		{reason: "A version from before the write is behind.", uid: "a", version: "9", want: true},
		{reason: "It stays behind until the write shows.", uid: "a", version: "9", after: catchUp - 1, want: true},
		{reason: "The write itself is not.", uid: "a", version: "10", after: time.Second},
		{reason: "What has caught up is forgotten.", uid: "a", version: "9", after: time.Second},
		{reason: "A later version is not behind either.", uid: "b", version: "13", after: time.Second},
		{reason: "Before a version that is not the newest it is behind.", uid: "d", version: "9", want: true},
		{reason: "That version itself is, too.", uid: "d", version: "10", after: catchUp - 1, want: true},
		{reason: "A newer one is not.", uid: "d", version: "11", after: time.Second},
		{reason: "And that is forgotten.", uid: "d", version: "10", after: time.Second},
	}

	for _, s := range steps {
		if got := w.Behind(object(s.uid, s.version), start.Add(s.after)); got != s.want {
			t.Errorf("%s\nbehind: got %t, want %t", s.reason, got, s.want)
		}
	}
}

func TestTheCacheIsNotWaitedForInVain(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for name, expect := range map[string]func(*Expectations, types.UID, string, time.Time){
		"Expect": (*Expectations).Expect, "ExpectAfter": (*Expectations).ExpectAfter,
	} {
		w := &Expectations{}
		expect(w, "a", "10", start)

		if w.Behind(object("a", "9"), start.Add(catchUp)) {
			t.Errorf("%s: a version that never shows: behind after %s", name, catchUp)
		}

		expect(w, "a", "10", start)

		if w.Behind(object("a", "not a number"), start) {
			t.Errorf("%s: versions that cannot be compared: behind", name)
		}
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

func TestWhatIsRememberedIsTheNewest(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for name, remember := range map[string]func(*Expectations){
		"Write":    func(w *Expectations) { w.Expect("a", "20", start); w.Expect("a", "19", start) },
		"Conflict": func(w *Expectations) { w.Expect("a", "20", start); w.ExpectAfter("a", "10", start) },
		"Later":    func(w *Expectations) { w.ExpectAfter("a", "10", start); w.Expect("a", "20", start) },
		"Same":     func(w *Expectations) { w.ExpectAfter("a", "19", start); w.Expect("a", "19", start) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &Expectations{}
			remember(w)

			if !w.Behind(object("a", "19"), start) || w.Behind(object("a", "20"), start) {
				t.Error("what is remembered is not the newest")
			}
		})
	}
}
