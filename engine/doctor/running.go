// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	// heartbeat is the lease that managers with a webhook renew every ten seconds,
	// and leader the one that a leader renews.
	heartbeat = "kausality-webhook"
	leader    = "kausality-manager"
	// stale is how old a lease may be: three beats and more.
	stale = 40 * time.Second
	// soon is how long before its end a certificate is warned of. Self-made ones
	// are replaced in the last third of their time, so only those can come so close
	// that nothing replaces.
	soon = 7 * 24 * time.Hour
)

// CertificateSecret holds the certificate that the manager made itself.
const CertificateSecret = "kausality-webhook-cert" //nolint:gosec // A name.

// manager checks that somebody renews the leases.
func manager(s *State) []Finding {
	f := Finding{
		Severity: Error, Object: "Lease " + s.Home + "/" + heartbeat,
		Why:    "gates stay as they are, and the kinds that fail closed cannot be changed",
		Remedy: "kubectl get pods, logs -n " + s.Home + "; where it runs elsewhere, say so with --kausality-namespace",
	}

	lease := s.Lists[Leases].find(heartbeat)
	if lease == nil {
		f.What = "no manager has ever renewed it"

		return []Finding{f}
	}

	if at, ok := renewed(lease); !ok || s.Now.Sub(at) > stale {
		f.What = fmt.Sprintf("no manager is at work: it was renewed at %s last", at.UTC().Format(time.RFC3339))

		return []Finding{f}
	}

	lease = s.Lists[Leases].find(leader)
	if lease == nil || resource.String(lease.Object, "spec", "holderIdentity") == "" {
		return nil // Without --leader-elect nobody holds it.
	}

	if at, ok := renewed(lease); !ok || s.Now.Sub(at) > stale {
		f.Object = "Lease " + s.Home + "/" + leader
		f.What = fmt.Sprintf("no leader renews it since %s", at.UTC().Format(time.RFC3339))
		f.Why = "gates stay as they are, and configurations are not kept"

		return []Finding{f}
	}

	return nil
}

func renewed(lease *unstructured.Unstructured) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, resource.String(lease.Object, "spec", "renewTime"))

	return at, err == nil
}

// reach checks that the API server asks the webhook.
func reach(s *State) []Finding {
	switch {
	case s.Probe.Problem != "":
		return []Finding{{
			Severity: Warning, What: "cannot ask: " + s.Probe.Problem, Why: "whether the API server reaches the webhook is not known",
			Remedy: "run it as somebody who may create allowancepolicies." + AllowancePolicies.Group + "; it is a dry run, which stores nothing",
		}}
	case !s.Probe.Answered:
		return []Finding{{
			Severity: Error, Object: "ValidatingWebhookConfiguration " + configuration,
			What: "the webhook did not answer a dry-run request",
			Why:  "changes of kinds that fail closed are refused, and all others go by unseen",
			Remedy: "see that the manager is ready, that its Service has endpoints, that no network policy keeps the API server from it, " +
				"and that its certificate is trusted",
		}}
	default:
		return nil
	}
}

// bundle is what the API server trusts of our webhook.
func bundle(s *State) []*x509.Certificate {
	u := s.Lists[Validating].find(configuration)
	if u == nil {
		return nil
	}

	var out []*x509.Certificate

	for _, hook := range maps(u.Object, "webhooks") {
		if list := certificates(resource.String(hook, "clientConfig", "caBundle")); len(list) > 0 {
			out = list
		}
	}

	return out
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
	list := bundle(s)

	var last time.Time

	for _, c := range list {
		if c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}

	if len(list) == 0 {
		return nil // That there is none is told already.
	}

	return lasts(s, "ValidatingWebhookConfiguration "+configuration, "CA", last, list[0])
}

// lasts says what is wrong with the end of a certificate. What is self-made is
// replaced in time as long as the manager is at work.
func lasts(s *State, object, what string, end time.Time, c *x509.Certificate) []Finding {
	f := Finding{
		Severity: Error, Object: object, Why: "the API server trusts the webhook no longer from then on",
		Remedy: "see the manager's log: it replaces what it made itself; with --webhook-cert-dir renew what is mounted",
	}

	switch left := end.Sub(s.Now); {
	case left <= 0:
		f.What = fmt.Sprintf("the %s ended at %s", what, end.UTC().Format(time.RFC3339))
	case left < min(soon, c.NotAfter.Sub(c.NotBefore)/10):
		f.Severity, f.What = Warning, fmt.Sprintf("the %s ends at %s", what, end.UTC().Format(time.RFC3339))
	default:
		return nil
	}

	return []Finding{f}
}

// serving checks the certificate that the manager made itself.
func serving(s *State) []Finding {
	u := s.Lists[Secrets].find(CertificateSecret)
	if u == nil {
		return nil // It is mounted.
	}

	chain := certificates(resource.String(u.Object, "data", "tls.crt"))
	object := "Secret " + s.Home + "/" + CertificateSecret

	if len(chain) == 0 {
		return []Finding{{
			Severity: Error, Object: object, What: "it holds no certificate", Why: "the webhook cannot be served",
			Remedy: "delete it: the manager makes it again",
		}}
	}

	if out := lasts(s, object, "certificate", chain[0].NotAfter, chain[0]); len(out) > 0 {
		return out
	}

	roots, between := x509.NewCertPool(), x509.NewCertPool()
	trusted := bundle(s)

	for _, c := range trusted {
		roots.AddCert(c)
	}

	for _, c := range chain[1:] {
		between.AddCert(c)
	}

	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: s.Now})
	if err != nil && len(trusted) > 0 {
		return []Finding{{
			Severity: Error, Object: "ValidatingWebhookConfiguration " + configuration,
			What:   "its CA bundle does not match the certificate in " + object,
			Why:    "the API server does not trust the webhook",
			Remedy: restart,
		}}
	}

	return nil
}
