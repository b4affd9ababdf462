// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=kausality-system,resources=secrets,resourceNames=kausality-webhook-cert,verbs=get;update

// maxTries is how often a replica tries to write what others write too. After
// one conflict it normally takes what they wrote.
const maxTries = 10

// Options say what a self-made certificate is for.
type Options struct {
	// Secret that holds the certificates. It is made if missing.
	Secret client.ObjectKey
	// Hosts are the names and addresses that clients use.
	Hosts []string
	// Lifetimes of the certificates; those of DefaultLifetimes if zero.
	Lifetimes Lifetimes
	// Log says what is done and what fails.
	Log logr.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Own is the webhook's serving certificate, self-made. It and its CA
// are stored in a secret that all replicas share, and are replaced in time. A new
// CA is in everybody's bundle before it signs, and a former one until it ends,
// so that nobody is refused in between.
type Own struct {
	client  client.Client
	opts    Options
	trust   *trust
	serving atomic.Pointer[serving]
	// since is when this replica began to publish a CA. That is not in the secret:
	// if all replicas were away, clients may not know the CA, however old it is.
	since map[string]time.Time
}

// New loads the certificates from the secret, or makes them. The
// client must not read from a cache.
func New(ctx context.Context, c client.Client, opts Options) (*Own, error) {
	if opts.Lifetimes == (Lifetimes{}) {
		opts.Lifetimes = DefaultLifetimes()
	}

	if err := opts.Lifetimes.validate(); err != nil {
		return nil, err
	}

	if opts.Now == nil {
		opts.Now = time.Now
	}

	cert := &Own{client: c, opts: opts, trust: newTrust()}
	if err := cert.refresh(ctx); err != nil {
		return nil, err
	}

	return cert, nil
}

// Bundle returns the certificates of all trusted CAs as PEM: the present one,
// the next one, and former ones that have not ended.
func (c *Own) Bundle() []byte { return c.trust.get() }

// Changed receives when Bundle has changed. It is for one reader.
func (c *Own) Changed() <-chan struct{} { return c.trust.changed }

// NotAfter is when the certificate that is served ends.
func (c *Own) NotAfter() time.Time { return c.serving.Load().pair.Leaf.NotAfter }

// TLS makes a TLS server use the certificate.
func (c *Own) TLS(cfg *tls.Config) {
	cfg.MinVersion = tls.VersionTLS12
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.serving.Load().pair, nil }
}

// NeedLeaderElection is false: every replica serves.
func (*Own) NeedLeaderElection() bool { return false }

// Start maintains the certificates until the context ends. It fails only
// when there is nothing left to serve with.
func (c *Own) Start(ctx context.Context) error {
	tick := time.NewTicker(c.opts.Lifetimes.Reload)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		err := c.refreshInTime(ctx)

		switch {
		case err == nil || ctx.Err() != nil:
		case c.opts.Now().After(c.NotAfter()):
			return err
		default:
			c.opts.Log.Error(err, "cannot keep the webhook's certificates up to date", "notAfter", c.NotAfter())
		}
	}
}

// refreshInTime gives up in time for the next try.
func (c *Own) refreshInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Lifetimes.Reload)
	defer cancel()

	return c.refresh(ctx)
}

// refresh takes the certificates from the secret, after doing to them what is
// due. Another replica may be faster: its certificates are then taken.
func (c *Own) refresh(ctx context.Context) error {
	var err error
	for range maxTries {
		if err = c.load(ctx); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}

	return err
}

func (c *Own) load(ctx context.Context) error {
	s := &corev1.Secret{}
	err := c.client.Get(ctx, c.opts.Secret, s)
	missing := apierrors.IsNotFound(err)

	if err != nil && !missing {
		return fmt.Errorf("cannot get secret %q: %w", c.opts.Secret, err)
	}

	r := c.rotation()

	k, err := r.step(s.Data, c.serving.Load())
	if err != nil {
		return err
	}

	if missing {
		err = c.create(ctx, k)
	} else {
		err = c.update(ctx, s, k)
	}

	if err != nil {
		return fmt.Errorf("cannot write secret %q: %w", c.opts.Secret, err)
	}

	c.adopt(k)

	return nil
}

func (c *Own) rotation() rotation {
	now := c.opts.Now()

	return rotation{hosts: c.opts.Hosts, life: c.opts.Lifetimes, now: now, published: func(ca *x509.Certificate) bool {
		since, ok := c.since[string(ca.Raw)]

		return ok && now.Sub(since) >= c.opts.Lifetimes.Publish
	}}
}

func (c *Own) create(ctx context.Context, k *keyring) error {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.opts.Secret.Namespace, Name: c.opts.Secret.Name, Labels: map[string]string{v1alpha1.LabelOwn: "true"},
		},
		Type: corev1.SecretTypeTLS,
	}
	put(s, k.data())

	if err := c.client.Create(ctx, s); err != nil {
		return err
	}

	c.opts.Log.Info("made the secret of the webhook's certificates", "secret", c.opts.Secret, "did", k.did)

	return nil
}

// update leaves alone what is not ours: labels, other keys, and the type, which
// nobody can change.
func (c *Own) update(ctx context.Context, s *corev1.Secret, k *keyring) error {
	if !put(s, k.data()) {
		return nil
	}

	if err := c.client.Update(ctx, s); err != nil {
		return err
	}

	c.opts.Log.Info("updated the webhook's certificates", "secret", c.opts.Secret, "did", k.did)

	return nil
}

// put writes data into a secret, and reports whether that changed it.
func put(s *corev1.Secret, data map[string][]byte) bool {
	old := maps.Clone(s.Data)

	if s.Data == nil {
		s.Data = map[string][]byte{}
	}

	for key, value := range data {
		if value == nil {
			delete(s.Data, key)
		} else {
			s.Data[key] = value
		}
	}

	return !maps.EqualFunc(old, s.Data, bytes.Equal)
}

// adopt publishes the CAs, and serves with what the secret holds. If its CA is
// news, because somebody replaced the secret, this replica first goes on with
// what it has until clients know the CA.
func (c *Own) adopt(k *keyring) {
	r := c.rotation()
	since := make(map[string]time.Time, len(k.trusted))

	for _, ca := range k.trusted {
		at, ok := c.since[string(ca.Raw)]
		if !ok {
			at = r.now
		}

		since[string(ca.Raw)] = at
	}

	c.since = since
	c.trust.set(k.bundle())

	served := c.serving.Load()
	if !r.good(served) || served.issuer.Equal(k.serving.issuer) || r.published(k.serving.issuer) {
		c.serving.Store(k.serving)
	}
}
