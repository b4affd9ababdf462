// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var (
	start     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	testHosts = []string{"kausality-webhook.kausality-system.svc", "127.0.0.1"}
	testLife  = Lifetimes{Authority: 90 * time.Hour, Serving: 30 * time.Hour, Publish: 10 * time.Minute, Reload: time.Minute}
)

func testAuthority(t *testing.T, now time.Time) *authority {
	t.Helper()

	a, err := newAuthority(now, testLife.Authority)
	if err != nil {
		t.Fatal(err)
	}

	return a
}

func testServing(t *testing.T, a *authority, now time.Time) *serving {
	t.Helper()

	crt, key, err := a.issue(testHosts, now, testLife.Serving)
	if err != nil {
		t.Fatal(err)
	}

	s, err := (rotation{hosts: testHosts, now: now}).parseServing(crt, key, []*x509.Certificate{a.crt})
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// outcome of a step, with CAs by their names in the test, "new" for others.
type outcome struct {
	Bundle               []string
	Signer, Next, Issuer string
	Issued               bool
}

func TestRotationKeepsWhatIsTrustedAndReplacesWhatEnds(t *testing.T) {
	old, next, former := testAuthority(t, start), testAuthority(t, start.Add(61*time.Hour)), testAuthority(t, start.Add(-60*time.Hour))
	leaf := testServing(t, old, start)
	late := testServing(t, old, start.Add(59*time.Hour))

	stable := func(s *serving, trusted ...*authority) map[string][]byte {
		k := &keyring{signer: old, serving: s}
		for _, a := range trusted {
			k.trusted = append(k.trusted, a.crt)
		}

		return k.data()
	}
	with := func(data map[string][]byte, key string, value []byte) map[string][]byte {
		data = maps.Clone(data)
		data[key] = value

		return data
	}
	staged := with(stable(late, old, next), keyNext, next.key)
	garbage := map[string][]byte{
		keyAuthorities: []byte("-----BEGIN"), keySigner: []byte("\x00"), keyNext: encodeCertificates([]byte("x")),
		corev1.TLSCertKey: encodeCertificates([]byte("x")), corev1.TLSPrivateKeyKey: []byte("none"),
	}

	cases := map[string]struct {
		reason    string
		data      map[string][]byte
		served    *serving
		hosts     []string
		at        time.Duration
		published bool
		want      outcome
	}{
		"Nothing": {
			reason: "Without anything a CA is made, and signs at once, because nobody can be refused.",
			want:   outcome{Bundle: []string{"new"}, Signer: "new", Issuer: "new", Issued: true},
		},
		"Good": {
			reason: "What lasts stays.",
			data:   stable(leaf, old), at: time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old"},
		},
		"ServingEndsSoon": {
			reason: "A serving certificate in its last third is issued again by the same CA.",
			data:   stable(leaf, old), at: 21 * time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old", Issued: true},
		},
		"ServingEnded": {
			reason: "An ended serving certificate is issued again by the same CA.",
			data:   stable(leaf, old), at: 31 * time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old", Issued: true},
		},
		"OtherHosts": {
			reason: "A serving certificate must be for all hosts.",
			data:   stable(leaf, old), hosts: []string{"example.org"}, at: time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old", Issued: true},
		},
		"OtherKey": {
			reason: "A serving certificate without its key is of no use.",
			data:   with(stable(leaf, old), corev1.TLSPrivateKeyKey, late.key), at: time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old", Issued: true},
		},
		"AuthorityEndsSoon": {
			reason: "A CA in its last third gets a successor, which does not sign yet.",
			data:   stable(late, old), at: 61 * time.Hour,
			want: outcome{Bundle: []string{"old", "new"}, Signer: "old", Next: "new", Issuer: "old"},
		},
		"NotYetPublished": {
			reason: "The successor waits until clients know it.",
			data:   staged, at: 62 * time.Hour,
			want: outcome{Bundle: []string{"old", "next"}, Signer: "old", Next: "next", Issuer: "old"},
		},
		"Published": {
			reason: "The successor signs when clients know it, and the former CA stays trusted.",
			data:   staged, at: 62 * time.Hour, published: true,
			want: outcome{Bundle: []string{"next", "old"}, Signer: "next", Issuer: "next", Issued: true},
		},
		"AuthorityAndServingEnded": {
			reason: "If nothing can be served, the successor signs at once.",
			data:   staged, at: 91 * time.Hour,
			want: outcome{Bundle: []string{"next"}, Signer: "next", Issuer: "next", Issued: true},
		},
		"EverythingEnded": {
			reason: "If nothing is left, all is made anew.",
			data:   staged, at: 200 * time.Hour,
			want: outcome{Bundle: []string{"new"}, Signer: "new", Issuer: "new", Issued: true},
		},
		"FormerAuthority": {
			reason: "A former CA is trusted until it ends.",
			data:   stable(leaf, former, old), at: 29 * time.Hour,
			want: outcome{Bundle: []string{"old", "former"}, Signer: "old", Issuer: "old", Issued: true},
		},
		"FormerAuthorityEnded": {
			reason: "An ended CA is dropped.",
			data:   stable(late, former, old), at: 59 * time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old"},
		},
		"AuthorityKeyLost": {
			reason: "A CA that cannot sign gets a successor, while what it signed goes on.",
			data:   with(stable(leaf, old), keySigner, []byte("none")), at: time.Hour,
			want: outcome{Bundle: []string{"old", "new"}, Next: "new", Issuer: "old"},
		},
		"AuthorityFromTheFuture": {
			reason: "A CA that has not begun cannot sign.",
			data:   stable(leaf, old), at: -2 * time.Hour,
			want: outcome{Bundle: []string{"new", "old"}, Signer: "new", Issuer: "new", Issued: true},
		},
		"Garbage": {
			reason: "Garbage is as good as nothing.",
			data:   garbage, at: time.Hour,
			want: outcome{Bundle: []string{"new"}, Signer: "new", Issuer: "new", Issued: true},
		},
		"GarbageWhileServing": {
			reason: "What is served goes on, and stays trusted, until clients know a new CA.",
			data:   garbage, served: leaf, at: time.Hour,
			want: outcome{Bundle: []string{"old", "new"}, Next: "new", Issuer: "old"},
		},
		"DeletedWhileServing": {
			reason: "A deleted secret does not end what is served.",
			served: leaf, at: time.Hour,
			want: outcome{Bundle: []string{"old", "new"}, Next: "new", Issuer: "old"},
		},
		"DeletedWhenServingEnded": {
			reason: "What has ended does not come back.",
			served: leaf, at: 31 * time.Hour,
			want: outcome{Bundle: []string{"new"}, Signer: "new", Issuer: "new", Issued: true},
		},
		"BundleLostWhileServing": {
			reason: "The CA of what is served needs nobody to remember it.",
			data:   with(stable(leaf, old), keyAuthorities, nil), served: leaf, at: time.Hour,
			want: outcome{Bundle: []string{"old"}, Signer: "old", Issuer: "old"},
		},
		"ReplacedWhileServing": {
			reason: "Where somebody put another CA, the one of what is served stays trusted.",
			data:   stable(leaf, old), served: testServing(t, former, start), at: time.Hour,
			want: outcome{Bundle: []string{"old", "former"}, Signer: "old", Issuer: "old"},
		},
		"OtherSigner": {
			reason: "A CA that somebody put in to sign does not before clients know it.",
			data:   with(stable(late, old, next), keySigner, next.key), at: 62 * time.Hour,
			want: outcome{Bundle: []string{"old", "next"}, Signer: "next", Issuer: "old"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := rotation{
				hosts: testHosts, life: testLife, now: start.Add(tc.at),
				published: func(*x509.Certificate) bool { return tc.published },
			}
			if tc.hosts != nil {
				r.hosts = tc.hosts
			}

			k, err := r.step(tc.data, tc.served)
			if err != nil {
				t.Fatalf("%s\nstep: %v", tc.reason, err)
			}

			names := func(crt *x509.Certificate) string {
				for name, a := range map[string]*authority{"old": old, "next": next, "former": former} {
					if a.crt.Equal(crt) {
						return name
					}
				}

				return "new"
			}

			if diff := cmp.Diff(tc.want, describe(k, tc.data, tc.served, r.now, names)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			// What was written is read as it is, and nothing is left to do.
			again, err := r.step(k.data(), nil)
			if err != nil {
				t.Fatalf("%s\nstep again: %v", tc.reason, err)
			}

			if diff := cmp.Diff(k.data(), again.data()); diff != "" {
				t.Errorf("%s\nThe same step again changes something:\n%s", tc.reason, diff)
			}
		})
	}
}

func describe(k *keyring, data map[string][]byte, served *serving, now time.Time, name func(*x509.Certificate) string) outcome {
	out := outcome{
		Issuer: name(k.serving.issuer),
		Issued: !bytes.Equal(k.serving.crt, data[corev1.TLSCertKey]) && (served == nil || !bytes.Equal(k.serving.crt, served.crt)),
	}

	if k.signer != nil {
		out.Signer = name(k.signer.crt)
	}

	if k.next != nil {
		out.Next = name(k.next.crt)
	}

	for _, crt := range parseAuthorities(k.bundle(), now) {
		out.Bundle = append(out.Bundle, name(crt))
	}

	return out
}

func TestServingCertificatesDoNotOutliveTheirAuthority(t *testing.T) {
	a := testAuthority(t, start)
	s := testServing(t, a, start.Add(80*time.Hour))

	if diff := cmp.Diff(a.crt.NotAfter, s.pair.Leaf.NotAfter); diff != "" {
		t.Errorf("end of the CA, end of what it issues:\n%s", diff)
	}
}

func TestHostsThatNoCertificateCanNameAreAnError(t *testing.T) {
	r := rotation{hosts: []string{""}, life: testLife, now: start, published: func(*x509.Certificate) bool { return false }}

	_, err := r.step(nil, nil)
	if err == nil {
		t.Error("step: no error")
	}
}
