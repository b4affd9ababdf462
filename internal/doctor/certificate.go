// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// soon is how long before its end a certificate is warned of. Self-made ones are
// replaced in the last third of their time, so only those can come so close that
// nothing replaces.
const soon = 7 * 24 * time.Hour

// trust is what the API server trusts where it asks some webhooks.
type trust struct {
	configuration, bundle, server string
}

// trusts are all there are, in order.
func trusts(s *State) []trust {
	var out []trust

	for _, h := range hooks(s) {
		t := trust{configuration: h.configuration, bundle: h.bundle(), server: h.server()}
		if t.bundle != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}

	return out
}

// hostOf is the host of a URL; empty for none.
func hostOf(text string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(text, "https://"), "/")
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}

	return host
}

// certificates reads PEM in base64.
func certificates(text string) []*x509.Certificate {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}

	var out []*x509.Certificate

	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}

	return out
}

// authorities checks that a CA of the webhook configurations lasts.
func authorities(s *State) []Finding {
	var out []Finding

	for _, t := range trusts(s) {
		list := certificates(t.bundle)
		if len(list) == 0 {
			out = append(out, Finding{
				Severity: Error, Object: t.configuration, What: "its CA bundle holds no certificate",
				Why: untrusted, Remedy: restart,
			})

			continue
		}

		last := slices.MaxFunc(list, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		out = append(out, lasts(s, t.configuration, "CA", last)...)
	}

	return slices.Compact(out)
}

// untrusted is why certificates matter.
const untrusted = "the API server does not trust the webhook"

// lasts says what is wrong with the end of a certificate. What is self-made is
// replaced in time as long as the manager is at work.
func lasts(s *State, object, what string, c *x509.Certificate) []Finding {
	f := Finding{
		Severity: Error, Object: object, Why: "the API server trusts the webhook no longer from then on",
		Remedy: "see the manager's log: it replaces what it made itself; with --webhook-cert-dir renew what is mounted",
	}

	switch left := c.NotAfter.Sub(s.Now); {
	case left <= 0:
		f.What = fmt.Sprintf("the %s ended at %s", what, c.NotAfter.UTC().Format(time.RFC3339))
	case left < min(soon, c.NotAfter.Sub(c.NotBefore)/10):
		f.Severity, f.What = Warning, fmt.Sprintf("the %s ends at %s", what, c.NotAfter.UTC().Format(time.RFC3339))
	default:
		return nil
	}

	return []Finding{f}
}

// serving checks the certificate that the webhook is served with, where it is
// known.
func serving(s *State) []Finding {
	m := s.Manager
	object := "Secret " + m.Namespace + "/" + m.Secret
	u := s.Lists[Secrets].find(m.Secret)

	switch {
	case m.Secret == "", u == nil && m.By == "":
		return []Finding{{Severity: OK, What: "Nothing tells which Secret the webhook's certificate is in."}}
	case u == nil:
		return []Finding{{
			Severity: Warning, Object: object, What: "it is missing, and should hold the webhook's certificate",
			Why:    "a manager that starts has none, or makes one that the API server does not trust yet",
			Remedy: "see who writes it: the manager within a minute, or Crossplane for a Provider, or cert-manager",
		}}
	}

	chain := certificates(resource.String(u.Object, "data", "tls.crt"))

	if len(chain) == 0 {
		f := Finding{
			Severity: Error, Object: object, What: "it holds no certificate", Why: "the webhook cannot be served",
			Remedy: "delete it: the manager makes it again",
		}
		if m.Mounted {
			f.Remedy = "see who writes it: Crossplane for a Provider, or cert-manager"
		}

		return []Finding{f}
	}

	out := lasts(s, object, "certificate", chain[0])
	if len(out) > 0 {
		return out
	}

	for _, t := range trusts(s) {
		if f := t.verify(s, object, chain); f != nil {
			out = append(out, *f)
		}
	}

	if len(out) == 0 {
		return []Finding{{Severity: OK, Object: object, What: "It is signed by what the API server trusts."}}
	}

	return slices.Compact(out)
}

// verify checks that the API server trusts a certificate; nil where it does, or
// where it is the CA that has a fault of its own.
func (t trust) verify(s *State, object string, chain []*x509.Certificate) *Finding {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	trusted := certificates(t.bundle)

	for _, c := range trusted {
		roots.AddCert(c)
	}

	for _, c := range chain[1:] {
		between.AddCert(c)
	}

	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: s.Now, DNSName: t.server})

	var (
		other x509.HostnameError
		f     = &Finding{Severity: Error, Object: t.configuration, Why: untrusted, Remedy: restart}
	)

	switch {
	case err == nil || len(trusted) == 0:
		return nil
	case errors.As(err, &other):
		f.What = fmt.Sprintf("the certificate in %s is not for %s, where it has the webhook asked", object, t.server)
	default:
		f.What = "its CA bundle does not match the certificate in " + object
	}

	return f
}
