// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// authority is a certificate authority of our own.
type authority struct {
	crt, key []byte
	parsed   *x509.Certificate
	signer   *ecdsa.PrivateKey
}

// serialBits is the length of random serial numbers.
const serialBits = 128

func newAuthority() (*authority, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}

	tmpl, err := template("kausality-webhook-ca", authorityLifetime)
	if err != nil {
		return nil, err
	}

	tmpl.IsCA, tmpl.BasicConstraintsValid = true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot make a CA certificate: %w", err)
	}

	key, err := encodeKey(signer)
	if err != nil {
		return nil, err
	}

	return parseAuthority(encodeCertificate(der), key)
}

// parseAuthority reads a CA. One that ends before a certificate it would issue
// is an error.
func parseAuthority(crt, key []byte) (*authority, error) {
	parsed, err := parseCertificate(crt)
	if err != nil {
		return nil, err
	}

	if !parsed.IsCA || time.Until(parsed.NotAfter) < servingLifetime {
		return nil, fmt.Errorf("cannot use CA %q: it ends at %s", parsed.Subject.CommonName, parsed.NotAfter)
	}

	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errNoPEM
	}

	signer, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse CA key: %w", err)
	}

	return &authority{crt: crt, key: key, parsed: parsed, signer: signer}, nil
}

// issue makes a serving certificate and its key, as PEM.
func (a *authority) issue(hosts []string) (crt, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a key: %w", err)
	}

	tmpl, err := template("kausality-webhook", servingLifetime)
	if err != nil {
		return nil, nil, err
	}

	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}

	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.parsed, signer.Public(), a.signer)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a serving certificate: %w", err)
	}

	if key, err = encodeKey(signer); err != nil {
		return nil, nil, err
	}

	return encodeCertificate(der), key, nil
}

func template(name string, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}

	now := time.Now()

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Minute), // Clocks differ.
		NotAfter:     now.Add(lifetime),
	}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
