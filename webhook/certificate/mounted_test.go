// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// mount writes files as the kubelet does: into a new directory, to which a
// symbolic link is then renamed.
func mount(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()

	const data = "..data"

	fresh, err := os.MkdirTemp(dir, "..") //nolint:usetesting // It is inside what is mounted.
	if err != nil {
		t.Fatal(err)
	}

	for name, content := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Symlink(filepath.Join(data, name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}

	old, _ := os.Readlink(filepath.Join(dir, data)) // None at first.

	if err := os.Symlink(filepath.Base(fresh), filepath.Join(dir, data+"_tmp")); err != nil {
		t.Fatal(err)
	}

	if err := os.Rename(filepath.Join(dir, data+"_tmp"), filepath.Join(dir, data)); err != nil {
		t.Fatal(err)
	}

	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// provided are the files of a serving certificate made at a time.
func provided(t *testing.T, at time.Time) map[string][]byte {
	t.Helper()

	a := testAuthority(t, at)
	s := testServing(t, a, at)

	return map[string][]byte{
		keyAuthorities: encodeCertificates(a.crt.Raw), corev1.TLSCertKey: s.crt, corev1.TLSPrivateKeyKey: s.key,
	}
}

func TestMountedCertificatesAreSwappedWhileServing(t *testing.T) {
	dir, now := t.TempDir(), newClock()
	old, fresh := provided(t, start), provided(t, start.Add(time.Hour))
	mount(t, dir, old)

	m, err := NewMounted(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)

	go func() { done <- m.Start(ctx) }()

	address := serve(t, m.TLS)

	for _, want := range []map[string][]byte{old, fresh, old} {
		mount(t, dir, want)

		// It is mounted already at first, and nothing changes.
		for !bytes.Equal(m.Bundle(), want[keyAuthorities]) {
			<-m.Changed()
		}

		crt, err := dial(t, address, want[keyAuthorities], now.Now)
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond) // The files are read one after the other.
			crt, err = dial(t, address, want[keyAuthorities], now.Now)
		}

		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(crt.NotAfter, m.NotAfter()); diff != "" {
			t.Errorf("-served, +NotAfter:\n%s", diff)
		}
	}

	cancel()

	if err := <-done; err != nil {
		t.Errorf("Start: %v", err)
	}
}

func TestABrokenMountChangesNothingAndIsReportedOnce(t *testing.T) {
	old, fresh := provided(t, start), provided(t, start.Add(time.Hour))
	pick := func(authorities, crt, key []byte) map[string][]byte {
		files := map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}
		if authorities != nil {
			files[keyAuthorities] = authorities
		}

		return files
	}

	type result struct {
		Bundle  string
		Changed bool
		End     time.Time
		Errors  int
	}

	cases := map[string]struct {
		reason string
		files  map[string][]byte
		want   result
	}{
		"Same": {
			reason: "What is mounted again is no change.",
			files:  old,
			want:   result{Bundle: string(old[keyAuthorities]), End: start.Add(testLife.Serving)},
		},
		"New": {
			reason: "New files are read.",
			files:  fresh,
			want:   result{Bundle: string(fresh[keyAuthorities]), Changed: true, End: start.Add(testLife.Serving + time.Hour)},
		},
		"BrokenCertificate": {
			reason: "A certificate that cannot be parsed keeps the last pair.",
			files:  pick(old[keyAuthorities], []byte("garbage"), old[corev1.TLSPrivateKeyKey]),
			want:   result{Bundle: string(old[keyAuthorities]), End: start.Add(testLife.Serving), Errors: 1},
		},
		"OtherKey": {
			reason: "A key of another certificate keeps the last pair, and the bundle is still read.",
			files:  pick(fresh[keyAuthorities], fresh[corev1.TLSCertKey], old[corev1.TLSPrivateKeyKey]),
			want:   result{Bundle: string(fresh[keyAuthorities]), Changed: true, End: start.Add(testLife.Serving), Errors: 1},
		},
		"BrokenBundle": {
			reason: "A bundle that the API server would refuse keeps the last one, and the pair is still read.",
			files:  pick([]byte("garbage"), fresh[corev1.TLSCertKey], fresh[corev1.TLSPrivateKeyKey]),
			want:   result{Bundle: string(old[keyAuthorities]), End: start.Add(testLife.Serving + time.Hour), Errors: 1},
		},
		"NoBundle": {
			reason: "Without a bundle somebody else decides whom to trust.",
			files:  pick(nil, old[corev1.TLSCertKey], old[corev1.TLSPrivateKeyKey]),
			want:   result{Changed: true, End: start.Add(testLife.Serving)},
		},
		"EmptyBundle": {
			reason: "An empty bundle is none.",
			files:  pick([]byte("\n"), old[corev1.TLSCertKey], old[corev1.TLSPrivateKeyKey]),
			want:   result{Changed: true, End: start.Add(testLife.Serving)},
		},
		"Nothing": {
			reason: "A pair that is gone is kept.",
			want:   result{Changed: true, End: start.Add(testLife.Serving), Errors: 1},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var failures []string

			log := funcr.New(func(_, args string) {
				if strings.Contains(args, `"error"`) {
					failures = append(failures, args)
				}
			}, funcr.Options{})

			dir := t.TempDir()
			mount(t, dir, old)

			m, err := NewMounted(dir, log)
			if err != nil {
				t.Fatal(err)
			}

			mount(t, dir, tc.files)
			m.reload()
			m.reload()

			got := result{Bundle: string(m.Bundle()), Changed: changed(m), End: m.NotAfter(), Errors: len(failures)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, failures)
			}

			// What is fixed is read again, and can break again.
			mount(t, dir, old)
			m.reload()
			mount(t, dir, tc.files)
			m.reload()

			if diff := cmp.Diff(2*tc.want.Errors, len(failures)); diff != "" {
				t.Errorf("%s\nFailures, -want, +got:\n%s\n%s", tc.reason, diff, failures)
			}
		})
	}
}

func TestAMountThatIsBrokenAtFirstIsAnError(t *testing.T) {
	good := provided(t, start)

	cases := map[string]struct {
		reason string
		files  map[string][]byte
		want   string
	}{
		"Nothing": {
			reason: "There is nothing to serve with.",
			want:   `cannot read the certificate in "DIR": open DIR/tls.crt: no such file or directory`,
		},
		"NoKey": {
			reason: "A certificate is nothing without its key.",
			files:  map[string][]byte{corev1.TLSCertKey: good[corev1.TLSCertKey]},
			want:   `cannot read the certificate in "DIR": open DIR/tls.key: no such file or directory`,
		},
		"BrokenBundle": {
			reason: "The API server would refuse the bundle.",
			files:  map[string][]byte{keyAuthorities: []byte("garbage"), corev1.TLSCertKey: good[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: good[corev1.TLSPrivateKeyKey]},
			want:   `cannot parse the CA certificates in "DIR/ca.crt": data does not contain any valid RSA or ECDSA certificates`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, dir, tc.files)

			_, err := NewMounted(dir, logr.Discard())
			if err == nil {
				t.Fatalf("%s\nNewMounted: no error", tc.reason)
			}

			if diff := cmp.Diff(tc.want, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithoutMountedAuthoritiesThereIsNoBundle(t *testing.T) {
	dir, files := t.TempDir(), provided(t, start)
	delete(files, keyAuthorities)
	mount(t, dir, files)

	m, err := NewMounted(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	if got := m.Bundle(); got != nil {
		t.Errorf("Bundle: %q, want none", got)
	}
}

func TestACertificateThatHasEndedIsNotReady(t *testing.T) {
	dir, now := t.TempDir(), newClock()
	mount(t, dir, provided(t, start))

	m, err := NewMounted(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ready := Valid(m, now.Now)
	if err := ready(nil); err != nil {
		t.Error(err)
	}

	now.set(m.NotAfter())

	if err := ready(nil); err == nil || !strings.Contains(err.Error(), "the certificate ended at "+m.NotAfter().UTC().Format(time.RFC3339)) {
		t.Errorf("at its end: %v", err)
	}
}
