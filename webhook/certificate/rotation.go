// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the secret that holds the certificates, beside those of every TLS
// secret. Which CA a key belongs to shows in the key.
const (
	// keyAuthorities holds the certificates of all trusted CAs, the one of the
	// serving certificate first.
	keyAuthorities = "ca.crt"
	// keySigner holds the key of the CA that signs.
	keySigner = "ca.key"
	// keyNext holds the key of the CA that is published and will sign next.
	keyNext = "next.key"
)

// serving is a certificate to serve with, and the CA that it verifies with.
type serving struct {
	crt, key []byte // As PEM.
	pair     *tls.Certificate
	issuer   *x509.Certificate
}

// keyring is what the secret holds, without what is of no use.
type keyring struct {
	trusted      []*x509.Certificate
	signer, next *authority // Nil where there is none.
	serving      *serving
	// did says what was done to it, for the log.
	did []string
}

// rotation decides about certificates, as one replica sees them. It has no
// clock and does no I/O.
type rotation struct {
	hosts []string
	life  Lifetimes
	now   time.Time
	// published reports whether clients have had the time to learn of a CA.
	published func(ca *x509.Certificate) bool
}

// step returns what the secret shall hold, after what it holds and what this
// replica serves (nil at first). Every stage is stored in the secret, so that any
// replica can take the next one.
func (r rotation) step(data map[string][]byte, served *serving) (*keyring, error) {
	k := r.read(data, served)

	// 1. A CA that will end is given a successor.
	if err := r.succeed(k); err != nil {
		return nil, err
	}

	// 2. The successor signs when clients know it.
	r.promote(k)

	// 3. What is served is signed by the CA that signs, and lasts.
	if err := r.issue(k); err != nil {
		return nil, err
	}

	return k, nil
}

// read takes from the secret what is good. The CA of what is served stays
// trusted, and what is served takes the place of what is missing: so nobody is
// refused because somebody deleted or spoiled the secret. Keys of CAs do not
// come back: who deletes the secret gets new ones, in stages.
func (r rotation) read(data map[string][]byte, served *serving) *keyring {
	k := &keyring{trusted: parseAuthorities(data[keyAuthorities], r.now)}

	if !r.good(served) {
		served = nil
	} else {
		k.trusted = withCertificate(k.trusted, served.issuer)
	}

	k.signer = findAuthority(k.trusted, data[keySigner], r.now)
	k.next = findAuthority(k.trusted, data[keyNext], r.now)

	if s, err := r.parseServing(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], k.trusted); err == nil {
		k.serving = s
	} else {
		k.serving = served
	}

	return k
}

// good reports whether a replica can go on with what it serves.
func (r rotation) good(served *serving) bool {
	if served == nil {
		return false
	}

	_, err := r.verify(served.pair, []*x509.Certificate{served.issuer})

	return err == nil
}

func (r rotation) succeed(k *keyring) error {
	if k.next != nil || k.signer != nil && !due(k.signer.crt, r.now) {
		return nil
	}

	next, err := newAuthority(r.now, r.life.Authority)
	if err != nil {
		return err
	}

	k.next, k.trusted = next, withCertificate(k.trusted, next.crt)
	k.did = append(k.did, "made a CA")

	return nil
}

// promote does not wait where nothing could be served otherwise.
func (r rotation) promote(k *keyring) {
	stuck := k.signer == nil && k.serving == nil
	if k.next == nil || !stuck && !r.published(k.next.crt) {
		return
	}

	k.signer, k.next = k.next, nil
	k.did = append(k.did, "changed to the next CA")
}

func (r rotation) issue(k *keyring) error {
	if k.signer == nil || k.serving != nil && !r.replaceable(k) {
		return nil
	}

	crt, key, err := k.signer.issue(r.hosts, r.now, r.life.Serving)
	if err != nil {
		return err
	}

	// One that does not verify would be made again and again.
	s, err := r.parseServing(crt, key, []*x509.Certificate{k.signer.crt})
	if err != nil {
		return fmt.Errorf("cannot make a serving certificate for hosts %q: %w", r.hosts, err)
	}

	k.serving = s
	k.did = append(k.did, "issued a serving certificate")

	return nil
}

// replaceable reports whether the serving certificate is of a former CA, and
// clients know the present one, or ends soon, and a new one would last longer.
func (r rotation) replaceable(k *keyring) bool {
	if !k.serving.issuer.Equal(k.signer.crt) {
		return r.published(k.signer.crt)
	}

	leaf := k.serving.pair.Leaf

	return due(leaf, r.now) && leaf.NotAfter.Before(k.signer.crt.NotAfter)
}

func (r rotation) parseServing(crt, key []byte, trusted []*x509.Certificate) (*serving, error) {
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, fmt.Errorf("cannot parse a serving certificate: %w", err)
	}

	issuer, err := r.verify(&pair, trusted)
	if err != nil {
		return nil, err
	}

	return &serving{crt: crt, key: key, pair: &pair, issuer: issuer}, nil
}

// verify does as a client does, for all hosts, and returns the CA.
func (r rotation) verify(pair *tls.Certificate, trusted []*x509.Certificate) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	for _, ca := range trusted {
		roots.AddCert(ca)
	}

	chains, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: r.now})
	if err != nil {
		return nil, fmt.Errorf("cannot verify a serving certificate: %w", err)
	}

	for _, host := range r.hosts {
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			return nil, fmt.Errorf("cannot verify a serving certificate: %w", err)
		}
	}

	return chains[0][len(chains[0])-1], nil
}

// bundle returns the trusted CAs as PEM: the one of the serving certificate,
// the next one, then the former ones from the last to end. So all replicas
// write the same.
func (k *keyring) bundle() []byte {
	rank := func(crt *x509.Certificate) int {
		switch {
		case k.serving.issuer.Equal(crt):
			return 0
		case k.next != nil && k.next.crt.Equal(crt):
			return 1
		default:
			return 2
		}
	}

	sorted := slices.SortedFunc(slices.Values(k.trusted), func(a, b *x509.Certificate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.NotAfter.Compare(a.NotAfter), bytes.Compare(a.Raw, b.Raw))
	})

	ders := make([][]byte, 0, len(sorted))
	for _, crt := range sorted {
		ders = append(ders, crt.Raw)
	}

	return encodeCertificates(ders...)
}

// data is what goes into the secret; keys that are to go are nil.
func (k *keyring) data() map[string][]byte {
	out := map[string][]byte{
		keyAuthorities: k.bundle(), keySigner: nil, keyNext: nil,
		corev1.TLSCertKey: k.serving.crt, corev1.TLSPrivateKeyKey: k.serving.key,
	}

	if k.signer != nil {
		out[keySigner] = k.signer.key
	}

	if k.next != nil {
		out[keyNext] = k.next.key
	}

	return out
}
