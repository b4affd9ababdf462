// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificate is what the webhook serves with: certificates of its own in a Secret, which follow each other before they
// end, or those that somebody mounts.
//
// Its files:
//   - provider.go: what both kinds of certificates have in common ([Provider]); lifetimes and their checks; the current CA bundle
//   - own.go: self-made certificates, in a Secret that all replicas share ([Own])
//   - rotation.go: the steps of a rotation, without I/O: next CA, change to it, serving certificate ([rotation.step])
//   - authority.go: how a CA and a serving certificate are made, and when one is to be replaced ([authority.issue], [due])
//   - mounted.go: certificates in mounted files, such as those of cert-manager ([Mounted])
//   - ready.go: the readiness check of the certificate ([Valid])
package certificate

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Trust is what clients verify a server with.
type Trust interface {
	// Bundle returns the CA certificates to trust as PEM, the present one first;
	// nil where that is decided elsewhere.
	Bundle() []byte
	// Changed receives when Bundle has changed. It is for one reader.
	Changed() <-chan struct{}
}

// Provider serve the webhook. They are maintained while they run, in
// every replica.
type Provider interface {
	manager.Runnable
	manager.LeaderElectionRunnable
	Trust

	// TLS makes a server use them.
	TLS(cfg *tls.Config)
	// NotAfter is when the certificate that is served ends.
	NotAfter() time.Time
}

var (
	_ Provider = (*Own)(nil)
	_ Provider = (*Mounted)(nil)
)

// Lifetimes of self-made certificates. Both kinds are replaced when a third of
// their time is left.
type Lifetimes struct {
	// Authority is how long a CA lasts.
	Authority time.Duration
	// Serving is how long a serving certificate lasts; never longer than its CA.
	Serving time.Duration
	// Publish is how long a CA is in the bundle before it signs. All replicas must
	// reload in that time, and then all clients must learn the bundle.
	Publish time.Duration
	// Reload is how often a replica reads what the others did.
	Reload time.Duration
}

// DefaultLifetimes publish a CA for ten minutes: replicas reload every minute,
// and webhook configurations are refreshed every minute.
func DefaultLifetimes() Lifetimes {
	const year = 365 * 24 * time.Hour

	return Lifetimes{Authority: 10 * year, Serving: year, Publish: 10 * time.Minute, Reload: time.Minute}
}

// validate refuses lifetimes under which a certificate would end before its
// successor is known.
func (l Lifetimes) validate() error {
	switch {
	case l.Reload <= 0:
		return fmt.Errorf("cannot reload certificates every %s: it must be more than nothing", l.Reload)
	case l.Publish <= l.Reload:
		return fmt.Errorf("cannot publish a CA for %s: replicas reload every %s", l.Publish, l.Reload)
	case l.Authority/leftover <= l.Publish+2*l.Reload:
		return fmt.Errorf("cannot use a CA for %s: a third of that must be more than the %s it is published for, and two reloads of %s",
			l.Authority, l.Publish, l.Reload)
	case l.Serving/leftover <= l.Reload:
		return fmt.Errorf("cannot use a certificate for %s: a third of that must be more than the %s between reloads", l.Serving, l.Reload)
	case l.Serving > l.Authority:
		return fmt.Errorf("cannot use a certificate for %s: its CA lasts %s", l.Serving, l.Authority)
	default:
		return nil
	}
}

// trust holds a bundle, and reports when it changes.
type trust struct {
	bundle  atomic.Pointer[[]byte]
	changed chan struct{}
}

func newTrust() *trust { return &trust{changed: make(chan struct{}, 1)} }

// set takes a bundle. The first one is no change: nobody has read another.
func (t *trust) set(bundle []byte) {
	old := t.bundle.Swap(&bundle)
	if old == nil || bytes.Equal(*old, bundle) {
		return
	}

	select {
	case t.changed <- struct{}{}:
	default: // The reader has yet to read, and will get the newest.
	}
}

func (t *trust) get() []byte { return bytes.Clone(*t.bundle.Load()) }
