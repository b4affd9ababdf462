// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
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

	"k8s.io/client-go/util/keyutil"
)

const (
	// serialBits is the length of random serial numbers.
	serialBits = 128
	// backdate is how far clocks may differ: certificates begin that much earlier,
	// those that last less than ten times that a tenth of their time earlier.
	backdate = time.Hour
	// leftover is the part of its time, one in so many, that is left when a
	// certificate is replaced.
	leftover = 3

	typeCertificate = "CERTIFICATE"
)

// authority is a certificate authority of our own.
type authority struct {
	crt    *x509.Certificate
	key    []byte // As PEM.
	signer *ecdsa.PrivateKey
}

func newAuthority(now time.Time, lifetime time.Duration) (*authority, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a CA key: %w", err)
	}

	tmpl, err := template("kausality-webhook-ca", now, lifetime)
	if err != nil {
		return nil, err
	}

	tmpl.IsCA, tmpl.BasicConstraintsValid = true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature

	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot make a CA certificate: %w", err)
	}

	crt, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot parse a CA certificate: %w", err)
	}

	key, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a CA key: %w", err)
	}

	return &authority{crt: crt, key: key, signer: signer}, nil
}

// findAuthority returns the CA that a key belongs to, if it can sign now.
func findAuthority(trusted []*x509.Certificate, key []byte, now time.Time) *authority {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil
	}

	signer, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil
	}

	for _, crt := range trusted {
		if signer.PublicKey.Equal(crt.PublicKey) && !now.Before(crt.NotBefore) {
			return &authority{crt: crt, key: key, signer: signer}
		}
	}

	return nil
}

// parseAuthorities reads the certificates of CAs that have not ended, each once.
// Whatever else there is it leaves out.
func parseAuthorities(raw []byte, now time.Time) []*x509.Certificate {
	var out []*x509.Certificate

	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		crt, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !crt.IsCA || crt.KeyUsage&x509.KeyUsageCertSign == 0 || now.After(crt.NotAfter) {
			continue
		}

		out = withCertificate(out, crt)
	}

	return out
}

func withCertificate(list []*x509.Certificate, crt *x509.Certificate) []*x509.Certificate {
	for _, have := range list {
		if have.Equal(crt) {
			return list
		}
	}

	return append(list, crt)
}

// issue makes a serving certificate and its key, as PEM.
func (a *authority) issue(hosts []string, now time.Time, lifetime time.Duration) (crt, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a serving key: %w", err)
	}

	tmpl, err := template("kausality-webhook", now, lifetime)
	if err != nil {
		return nil, nil, err
	}

	// So the end of what is served is the whole truth.
	if tmpl.NotAfter.After(a.crt.NotAfter) {
		tmpl.NotAfter = a.crt.NotAfter
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

	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.crt, signer.Public(), a.signer)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a serving certificate: %w", err)
	}

	if key, err = keyutil.MarshalPrivateKeyToPEM(signer); err != nil {
		return nil, nil, fmt.Errorf("cannot encode a serving key: %w", err)
	}

	return encodeCertificates(der), key, nil
}

func template(name string, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-min(backdate, lifetime/10)),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// due reports whether a certificate is to be replaced. It goes by the
// certificate's own time, whatever lifetimes are set today.
func due(crt *x509.Certificate, now time.Time) bool {
	return now.After(crt.NotAfter.Add(-crt.NotAfter.Sub(crt.NotBefore) / leftover))
}

func encodeCertificates(ders ...[]byte) []byte {
	var out bytes.Buffer
	for _, der := range ders {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: typeCertificate, Bytes: der}))
	}

	return out.Bytes()
}
