// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// together is the client of one of several replicas. Their first Gets return
// when all have been answered, so that all have seen the same.
type together struct {
	client.Client

	all  *sync.WaitGroup
	once sync.Once
}

func (c *together) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)

	c.once.Do(c.all.Done)
	c.all.Wait()

	return err
}

func TestReplicasThatStartAtOnceServeTheSame(t *testing.T) {
	const replicas = 3

	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}}

	cases := map[string]struct {
		reason string
		client client.Client
	}{
		"NoSecret":    {reason: "One of them makes the secret, and the others take it.", client: fake.NewClientBuilder().Build()},
		"EmptySecret": {reason: "One of them fills the secret, and the others take it.", client: fake.NewClientBuilder().WithObjects(empty).Build()},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var (
				first, all sync.WaitGroup
				certs      [replicas]*Own
				errs       [replicas]error
			)

			first.Add(replicas)

			for i := range replicas {
				all.Go(func() {
					certs[i], errs[i] = New(t.Context(), &together{Client: tc.client, all: &first}, options(newClock()))
				})
			}

			all.Wait()

			if err := errors.Join(errs[:]...); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}

			want := secret(t, tc.client).Data
			delete(want, keySigner) // A replica does not remember it.

			for _, cert := range certs {
				s := cert.serving.Load()

				got := map[string][]byte{keyAuthorities: cert.Bundle(), corev1.TLSCertKey: s.crt, corev1.TLSPrivateKeyKey: s.key}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n-secret, +replica:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestAReplicaTakesWhatAnotherDid(t *testing.T) {
	c, now := fake.NewClientBuilder().Build(), newClock()
	a, b := replica(t, c, options(now)), replica(t, c, options(now))
	first := a.serving.Load().issuer

	refresh(t, a, b)

	if changed(a) || changed(b) {
		t.Error("Something changed although there is nothing to do.")
	}

	// A third of its time before its end, the CA gets a successor.
	now.add(61 * time.Hour)
	refresh(t, a, b)

	if diff := cmp.Diff([]int{2, 2}, []int{authorities(a.Bundle()), authorities(b.Bundle())}); diff != "" {
		t.Errorf("CAs in the bundles, -want, +got:\n%s", diff)
	}

	if !changed(a) || !changed(b) || changed(a) {
		t.Error("Changed must receive once after a change.")
	}

	if !a.serving.Load().issuer.Equal(first) {
		t.Error("The successor signs before it is known.")
	}

	// One that starts now carries on, but does not count the time before it.
	now.add(testLife.Publish - time.Minute)
	late := replica(t, c, options(now))
	now.add(time.Minute)
	refresh(t, late)

	if !late.serving.Load().issuer.Equal(first) {
		t.Error("The successor signs before it was published all the time.")
	}

	refresh(t, b, a, late)

	for _, cert := range []*Own{a, b} {
		if cert.serving.Load().issuer.Equal(first) {
			t.Error("The successor does not sign after it was published.")
		}
	}

	now.add(testLife.Publish)
	refresh(t, late)

	if diff := cmp.Diff([]time.Time{a.NotAfter(), a.NotAfter()}, []time.Time{b.NotAfter(), late.NotAfter()}); diff != "" {
		t.Errorf("Replicas serve certificates with different ends:\n%s", diff)
	}

	// The former CA goes when it has ended.
	now.set(first.NotAfter.Add(time.Minute))
	refresh(t, a)

	if diff := cmp.Diff(1, authorities(a.Bundle())); diff != "" {
		t.Errorf("CAs in the bundle, -want, +got:\n%s", diff)
	}
}

func TestNobodyIsRefusedAfterSomebodyTouchesTheSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		touch  func(t *testing.T, c client.Client, now *clock)
	}{
		"Deleted": {
			reason: "A deleted secret is made again, with a new CA beside the one in use.",
			touch: func(t *testing.T, c client.Client, _ *clock) {
				t.Helper()

				if err := c.Delete(t.Context(), secret(t, c)); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Garbage": {
			reason: "Garbage in the secret is replaced, with a new CA beside the one in use.",
			touch: func(t *testing.T, c client.Client, _ *clock) {
				t.Helper()

				s := secret(t, c)
				for key := range s.Data {
					s.Data[key] = []byte("garbage")
				}

				if err := c.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			},
		},
		"MadeAnew": {
			reason: "The secret of a replica that knew nothing is taken, beside the CA in use.",
			touch: func(t *testing.T, c client.Client, now *clock) {
				t.Helper()

				if err := c.Delete(t.Context(), secret(t, c)); err != nil {
					t.Fatal(err)
				}

				replica(t, c, options(now))
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, now := fake.NewClientBuilder().Build(), newClock()
			a, b := replica(t, c, options(now)), replica(t, c, options(now))
			first := a.serving.Load()

			tc.touch(t, c, now)
			refresh(t, a, b)

			for _, cert := range []*Own{a, b} {
				if diff := cmp.Diff(string(first.crt), string(cert.serving.Load().crt)); diff != "" {
					t.Errorf("%s\nWhat is served changes at once:\n%s", tc.reason, diff)
				}

				if diff := cmp.Diff(string(secret(t, c).Data[keyAuthorities]), string(cert.Bundle())); diff != "" {
					t.Errorf("%s\n-secret, +bundle:\n%s", tc.reason, diff)
				}

				if got := authorities(cert.Bundle()); got != 2 || !changed(cert) {
					t.Errorf("%s\n%d CAs in the bundle, want 2 and a change", tc.reason, got)
				}
			}

			now.add(testLife.Publish)
			refresh(t, a, b)

			for _, cert := range []*Own{a, b} {
				if got := authorities(cert.Bundle()); cert.serving.Load().issuer.Equal(first.issuer) || got != 2 {
					t.Errorf("%s\n%d CAs in the bundle, want 2; the new one must sign", tc.reason, got)
				}
			}
		})
	}
}
