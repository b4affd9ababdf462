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
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is how long certificates are valid: longer than any stack runs.
const certificateLife = 365 * 24 * time.Hour

// Names of the files of a certificate, as Crossplane's functions and webhook servers want them.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	caFile   = "ca.crt"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer

	// pem of the certificate.
	pem []byte
}

// A keyPair is a certificate and its key, both PEM.
type keyPair struct {
	cert, key []byte
}

// newAuthority returns a new authority.
func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create authority %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(certificateLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot create authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot create authority %q: %w", name, err)
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// parseAuthority returns the authority of a certificate and its key.
func parseAuthority(pair keyPair) (*authority, error) {
	c, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("cannot parse authority: %w", err)
	}
	signer, ok := c.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("cannot parse authority: a %T cannot sign", c.PrivateKey)
	}
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("cannot parse authority: %w", err)
	}
	return &authority{cert: cert, key: signer, pem: pair.cert}, nil
}

// pair returns the authority's own certificate and key.
func (a *authority) pair() (keyPair, error) {
	key, err := encodeKey(a.key)
	return keyPair{cert: a.pem, key: key}, err
}

// serving signs a certificate for a server on this machine.
func (a *authority) serving(name string) (keyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.ParseIP(loopback)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client signs a certificate that makes its owner this user of the API server.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	name := template.Subject.CommonName
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot sign certificate of %q: %w", name, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot sign certificate of %q: %w", name, err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot sign certificate of %q: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	return keyPair{cert: encode("CERTIFICATE", der), key: keyPEM}, err
}

// write writes the pair, and the certificate that clients or servers are to trust, to a directory.
func (p keyPair) write(dir string, ca []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot write certificate: %w", err)
	}
	for name, b := range map[string][]byte{certFile: p.cert, keyFile: p.key, caFile: ca} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return fmt.Errorf("cannot write certificate: %w", err)
		}
	}
	return nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// encodeKey encodes as PKCS #8, which is all that everything here reads: the API server takes its
// service account key in this form too.
func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode key: %w", err)
	}
	return encode("PRIVATE KEY", der), nil
}
