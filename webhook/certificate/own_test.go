// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var (
	errBoom   = errors.New("boom")
	secretKey = client.ObjectKey{Namespace: "kausality-system", Name: "kausality-webhook-cert"}
)

// clock is set by the test.
type clock struct{ now atomic.Pointer[time.Time] }

func newClock() *clock {
	c := &clock{}
	c.set(start)

	return c
}

func (c *clock) set(now time.Time)   { c.now.Store(&now) }
func (c *clock) add(d time.Duration) { c.set(c.Now().Add(d)) }
func (c *clock) Now() time.Time      { return *c.now.Load() }
func options(c *clock) Options {
	return Options{Secret: secretKey, Hosts: testHosts, Lifetimes: testLife, Now: c.Now}
}

func replica(t *testing.T, c client.Client, opts Options) *Own {
	t.Helper()

	cert, err := New(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}

	return cert
}

func refresh(t *testing.T, certs ...*Own) {
	t.Helper()

	for _, c := range certs {
		if err := c.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func secret(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()

	s := &corev1.Secret{}
	if err := c.Get(t.Context(), secretKey, s); err != nil {
		t.Fatal(err)
	}

	return s
}

func authorities(bundle []byte) int { return len(parseAuthorities(bundle, start)) }

func changed(t Trust) bool {
	select {
	case <-t.Changed():
		return true
	default:
		return false
	}
}

func TestWhatIsNotOursInTheSecretStays(t *testing.T) {
	old := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name, Labels: map[string]string{"a": "b"}},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"other": []byte("thing")},
	}
	c := fake.NewClientBuilder().WithObjects(old).Build()
	replica(t, c, options(newClock()))

	got := secret(t, c)
	if diff := cmp.Diff([]string{keyAuthorities, keySigner, "other", corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, slices.Sorted(maps.Keys(got.Data))); diff != "" {
		t.Errorf("keys, -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(old, got, cmpopts.IgnoreFields(corev1.Secret{}, "Data", "TypeMeta", "ObjectMeta.ResourceVersion")); diff != "" {
		t.Errorf("-old, +new:\n%s", diff)
	}
}

// failing answers with errors that can be switched on.
type failing struct {
	client.Client

	get, create, update error
}

func (c *failing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.get != nil {
		return c.get
	}

	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *failing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if c.create != nil {
		return c.create
	}

	return c.Client.Create(ctx, obj, opts...)
}

func (c *failing) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if c.update != nil {
		return c.update
	}

	return c.Client.Update(ctx, obj, opts...)
}

func TestFailuresSayWhatCannotBeDone(t *testing.T) {
	cases := map[string]struct {
		reason string
		client failing
		want   string
	}{
		"Get": {
			reason: "Without knowing what is there nothing is made.",
			client: failing{get: errBoom}, want: `cannot get secret "kausality-system/kausality-webhook-cert": boom`,
		},
		"Create": {
			reason: "What is not in the secret is not used.",
			client: failing{create: errBoom}, want: `cannot write secret "kausality-system/kausality-webhook-cert": boom`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.client.Client = fake.NewClientBuilder().Build()

			_, err := New(t.Context(), &tc.client, options(newClock()))
			if !errors.Is(err, errBoom) {
				t.Fatalf("%s\nNewCertificate: %v, want %v", tc.reason, err, errBoom)
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNothingChangesThatCannotBeWritten(t *testing.T) {
	c, now := &failing{Client: fake.NewClientBuilder().Build()}, newClock()
	cert := replica(t, c, options(now))
	bundle, served := cert.Bundle(), cert.serving.Load()

	c.update = errBoom

	now.add(61 * time.Hour)

	if err := cert.refresh(t.Context()); !errors.Is(err, errBoom) {
		t.Errorf("refresh: %v, want %v", err, errBoom)
	}

	if diff := cmp.Diff(string(bundle), string(cert.Bundle())); diff != "" || cert.serving.Load() != served {
		t.Errorf("Bundle or certificate changed:\n%s", diff)
	}
}

func TestLifetimesMustLeaveTimeToLearnOfASuccessor(t *testing.T) {
	cases := map[string]struct {
		reason    string
		lifetimes Lifetimes
		want      string
	}{
		"Default": {reason: "The defaults work.", lifetimes: DefaultLifetimes()},
		"Zero":    {reason: "None are the defaults."},
		"NoReload": {
			reason:    "Replicas must reload.",
			lifetimes: Lifetimes{Authority: 9 * time.Hour, Serving: time.Hour, Publish: time.Minute},
			want:      "cannot reload certificates every 0s: it must be more than nothing",
		},
		"ShortPublish": {
			reason:    "All replicas must publish a CA before it signs.",
			lifetimes: Lifetimes{Authority: 9 * time.Hour, Serving: time.Hour, Publish: time.Minute, Reload: time.Minute},
			want:      "cannot publish a CA for 1m0s: replicas reload every 1m0s",
		},
		"ShortAuthority": {
			reason:    "A CA must last while its successor is published.",
			lifetimes: Lifetimes{Authority: 30 * time.Minute, Serving: 30 * time.Minute, Publish: 10 * time.Minute, Reload: time.Minute},
			want:      "cannot use a CA for 30m0s: a third of that must be more than the 10m0s it is published for, and two reloads of 1m0s",
		},
		"ShortServing": {
			reason:    "A certificate must last until the next reload.",
			lifetimes: Lifetimes{Authority: 9 * time.Hour, Serving: 3 * time.Minute, Publish: 10 * time.Minute, Reload: time.Minute},
			want:      "cannot use a certificate for 3m0s: a third of that must be more than the 1m0s between reloads",
		},
		"LongServing": {
			reason:    "A certificate ends with its CA.",
			lifetimes: Lifetimes{Authority: 9 * time.Hour, Serving: 10 * time.Hour, Publish: 10 * time.Minute, Reload: time.Minute},
			want:      "cannot use a certificate for 10h0m0s: its CA lasts 9h0m0s",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := New(t.Context(), fake.NewClientBuilder().Build(), Options{Secret: secretKey, Hosts: testHosts, Lifetimes: tc.lifetimes}); err != nil {
				got = err.Error()
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestARunningReplicaRotatesAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cert := replica(t, fake.NewClientBuilder().Build(), Options{Secret: secretKey, Hosts: testHosts, Lifetimes: quickLife})
		first := cert.serving.Load().issuer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)

		go func() { done <- cert.Start(ctx) }()

		<-cert.Changed()

		if got := time.Until(first.NotAfter); got > quickLife.Authority/2 {
			t.Errorf("A successor is made %s before the end of the CA.", got)
		}

		time.Sleep(quickLife.Publish + quickLife.Reload)

		if cert.serving.Load().issuer.Equal(first) {
			t.Error("The successor does not sign after it was published.")
		}

		cancel()

		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}

func TestARunningReplicaFailsWhenNothingIsLeftToServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &failing{Client: fake.NewClientBuilder().Build()}
		cert := replica(t, c, Options{Secret: secretKey, Hosts: testHosts, Lifetimes: testLife})
		end := cert.NotAfter()
		c.get = errBoom

		if err := cert.Start(t.Context()); !errors.Is(err, errBoom) {
			t.Errorf("Start: %v, want %v", err, errBoom)
		}

		if late := time.Since(end); late < 0 || late > 2*testLife.Reload {
			t.Errorf("Start ends %s after the certificate.", late)
		}
	})
}
