// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// mountedReload is how often mounted files are read, whatever file system
// events show: the default of certwatcher, which does not read ca.crt.
const mountedReload = 10 * time.Second

// Mounted is a serving certificate that somebody else provides, as files: a
// mounted secret, for instance of cert-manager. Files are read again when they
// change, and a broken one changes nothing.
type Mounted struct {
	authorities string // Path of the bundle.
	pair        *certwatcher.CertWatcher
	trust       *trust
	log         logr.Logger
	// poke says that the pair has changed.
	poke chan struct{}
	// reported is the last failure in the log.
	reported string
}

// NewMounted reads tls.crt, tls.key and ca.crt in a directory. Without ca.crt,
// or if it is empty, there is no bundle: the API server then trusts what its
// system does, or what cert-manager injects.
func NewMounted(dir string, log logr.Logger) (*Mounted, error) {
	m := &Mounted{
		authorities: filepath.Join(dir, keyAuthorities),
		trust:       newTrust(), log: log, poke: make(chan struct{}, 1),
	}
	if err := m.readBundle(); err != nil {
		return nil, err
	}

	pair, err := certwatcher.New(filepath.Join(dir, corev1.TLSCertKey), filepath.Join(dir, corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate in %q: %w", dir, err)
	}

	// It would log every failure each time, and elsewhere. We read ourselves.
	m.pair = pair.WithWatchInterval(time.Hour)
	pair.RegisterCallback(func(tls.Certificate) {
		select {
		case m.poke <- struct{}{}:
		default: // The last one is not yet seen to.
		}
	})

	return m, nil
}

// Bundle returns ca.crt as it is mounted; nil if there is none.
func (m *Mounted) Bundle() []byte { return m.trust.get() }

// Changed receives when Bundle has changed. It is for one reader.
func (m *Mounted) Changed() <-chan struct{} { return m.trust.changed }

// NotAfter is when the certificate that is served ends.
func (m *Mounted) NotAfter() time.Time {
	pair, err := m.pair.GetCertificate(nil)
	if err != nil || pair.Leaf == nil {
		return time.Time{}
	}

	return pair.Leaf.NotAfter
}

// TLS makes a TLS server use the certificate.
func (m *Mounted) TLS(cfg *tls.Config) {
	cfg.MinVersion = tls.VersionTLS12
	cfg.GetCertificate = m.pair.GetCertificate
}

// NeedLeaderElection is false: every replica serves.
func (*Mounted) NeedLeaderElection() bool { return false }

// Start reads the files again when they change, until the context ends.
func (m *Mounted) Start(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- m.pair.Start(ctx) }()

	tick := time.NewTicker(mountedReload)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watched:
			// There may be too many watches on the machine. We read from time to time.
			if err != nil && ctx.Err() == nil {
				m.log.Error(err, "cannot watch the webhook's certificate", "reloadEvery", mountedReload)
			}
		case <-m.poke:
			m.reload()
		case <-tick.C:
			m.reload()
		}
	}
}

// reload says once what is wrong, and when it is no more.
func (m *Mounted) reload() {
	err := kerrors.NewAggregate([]error{m.readBundle(), m.readPair()})

	text := ""
	if err != nil {
		text = err.Error()
	}

	if text == m.reported {
		return
	}

	m.reported = text

	if err != nil {
		m.log.Error(err, "cannot reload the webhook's certificate; going on with the last good one", "notAfter", m.NotAfter())
	} else {
		m.log.Info("reloaded the webhook's certificate", "notAfter", m.NotAfter())
	}
}

// readPair is what certwatcher does too; but that reports no error.
func (m *Mounted) readPair() error {
	if err := m.pair.ReadCertificate(); err != nil {
		return fmt.Errorf("cannot read the certificate in %q: %w", filepath.Dir(m.authorities), err)
	}

	return nil
}

func (m *Mounted) readBundle() error {
	raw, err := os.ReadFile(m.authorities)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the CA certificates: %w", err)
	}

	// cert-manager writes an empty one if it does not know the CA.
	if len(bytes.TrimSpace(raw)) == 0 {
		m.trust.set(nil)

		return nil
	}

	// As the API server does with a bundle.
	if _, err := cert.ParseCertsPEM(raw); err != nil {
		return fmt.Errorf("cannot parse the CA certificates in %q: %w", m.authorities, err)
	}

	m.trust.set(raw)

	return nil
}
