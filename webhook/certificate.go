// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=secrets,verbs=get;create;update

// Lifetimes of self-made certificates.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	servingLifetime   = 365 * 24 * time.Hour
	// renewBefore is how long before its end a serving certificate is renewed.
	renewBefore = servingLifetime / 3
	// renewEvery is how often that is looked at.
	renewEvery = time.Hour
)

// Keys of the secret that holds the certificates.
const (
	keyAuthority    = "ca.crt"
	keyAuthorityKey = "ca.key"
)

// errNoPEM is the cause when a secret does not hold a certificate.
var errNoPEM = errors.New("it holds no PEM certificate")

// Certificate is the webhook's serving certificate, self-made, kept in a secret
// that all replicas share, and renewed in time.
type Certificate struct {
	client  client.Client
	secret  client.ObjectKey
	hosts   []string
	current atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
}

// NewCertificate loads the certificate for some hosts (names or addresses) from
// a secret, or makes it. The client must not read from a cache.
func NewCertificate(ctx context.Context, c client.Client, secret client.ObjectKey, hosts []string) (*Certificate, error) {
	cert := &Certificate{client: c, secret: secret, hosts: hosts}
	if err := cert.refresh(ctx); err != nil {
		return nil, err
	}

	return cert, nil
}

// Bundle returns the CA certificate that clients verify with, as PEM.
func (c *Certificate) Bundle() []byte { return *c.bundle.Load() }

// TLS makes a TLS server use the certificate.
func (c *Certificate) TLS(cfg *tls.Config) {
	cfg.MinVersion = tls.VersionTLS12
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil }
}

// Start renews the certificate until the context ends.
func (c *Certificate) Start(ctx context.Context) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := c.refresh(ctx); err != nil && c.expired() {
				return err
			}
		}
	}
}

// NeedLeaderElection is false: every replica serves.
func (*Certificate) NeedLeaderElection() bool { return false }

func (c *Certificate) expired() bool {
	leaf := c.current.Load().Leaf

	return leaf == nil || time.Now().After(leaf.NotAfter)
}

// refresh takes the certificate from the secret, after making it where it is
// missing, ends soon or is for other hosts. Another replica may be faster: its
// certificate is then taken.
func (c *Certificate) refresh(ctx context.Context) error {
	for {
		err := c.load(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func (c *Certificate) load(ctx context.Context) error {
	s := &corev1.Secret{}
	err := c.client.Get(ctx, c.secret, s)
	missing := apierrors.IsNotFound(err)

	if err != nil && !missing {
		return fmt.Errorf("cannot get secret %q: %w", c.secret, err)
	}

	if missing || !c.good(s.Data) {
		if err := c.make(ctx, s, missing); err != nil {
			return err
		}
	}

	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("cannot read the certificate in secret %q: %w", c.secret, err)
	}

	bundle := s.Data[keyAuthority]
	c.current.Store(&pair)
	c.bundle.Store(&bundle)

	return nil
}

// make writes a new serving certificate, under the same CA where that is good.
func (c *Certificate) make(ctx context.Context, s *corev1.Secret, missing bool) error {
	ca, err := parseAuthority(s.Data[keyAuthority], s.Data[keyAuthorityKey])
	if err != nil {
		if ca, err = newAuthority(); err != nil {
			return err
		}
	}

	crt, key, err := ca.issue(c.hosts)
	if err != nil {
		return err
	}

	s.ObjectMeta = metav1.ObjectMeta{Namespace: c.secret.Namespace, Name: c.secret.Name, ResourceVersion: s.ResourceVersion, UID: s.UID}
	s.Type = corev1.SecretTypeTLS
	s.Data = map[string][]byte{
		keyAuthority: ca.crt, keyAuthorityKey: ca.key,
		corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key,
	}

	if missing {
		err = c.client.Create(ctx, s)
	} else {
		err = c.client.Update(ctx, s)
	}

	if err != nil {
		return fmt.Errorf("cannot write secret %q: %w", c.secret, err)
	}

	return nil
}

// good says whether a secret's certificate lasts, is for all hosts, and is
// signed by the CA beside it.
func (c *Certificate) good(data map[string][]byte) bool {
	leaf, err := parseCertificate(data[corev1.TLSCertKey])
	if err != nil || time.Until(leaf.NotAfter) < renewBefore {
		return false
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data[keyAuthority]) {
		return false
	}

	return !slices.ContainsFunc(c.hosts, func(host string) bool {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: hostname(host)})

		return err != nil
	})
}

// hostname brackets an address, as x509 wants it.
func hostname(host string) string {
	if net.ParseIP(host) != nil {
		return "[" + host + "]"
	}

	return host
}

func parseCertificate(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(bytes.TrimSpace(raw))
	if block == nil {
		return nil, errNoPEM
	}

	crt, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse certificate: %w", err)
	}

	return crt, nil
}
