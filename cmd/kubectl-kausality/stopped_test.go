// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

// beat is one of a lease that a manager renews by its own clock; nobody holds it
// where holder is empty, and of the webhook's there is no holder at all.
func beat(name string, holder any, at time.Time) *unstructured.Unstructured {
	spec := map[string]any{"renewTime": at.UTC().Format(metav1.RFC3339Micro)}
	if holder != nil {
		spec["holderIdentity"] = holder
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": name, "namespace": "kausality-system"}, "spec": spec,
	}}
}

func TestAManagerRunsAsLongAsItRenewsItsLeasesWhateverTheClock(t *testing.T) {
	t.Parallel()

	const ten = 10 * time.Second

	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	for name, tc := range map[string]struct {
		reason string
		// skew is how much the user's clock is ahead of the manager's.
		skew time.Duration
		// first is what there is, and then what comes of it after ten seconds.
		first, then *unstructured.Unstructured
		// renews has the first one renewed every ten seconds.
		renews bool
		want   error
		takes  time.Duration
	}{
		"Running":      {reason: "It renews.", renews: true, want: errRunning, takes: ten},
		"ClockAhead":   {reason: "The user's clock says that it renewed a minute ago.", skew: time.Minute, renews: true, want: errRunning, takes: ten},
		"ClockBehind":  {reason: "Or that it will.", skew: -time.Minute, renews: true, want: errRunning, takes: ten},
		"Stopped":      {reason: "It renews no more.", takes: quiet},
		"StoppedAhead": {reason: "So it is under a clock that is behind.", skew: -time.Hour, takes: quiet},
		"GivenUp":      {reason: "Who ends gives its lease up.", first: beat("kausality-gates", "", time.Time{})},
		"GivesUp":      {reason: "That it does so is no sign of life.", first: beat("kausality-gates", "a", time.Time{}), then: beat("kausality-gates", "", time.Time{}), takes: ten},
		"Others":       {reason: "Other leases are none of ours.", first: beat("other", "a", time.Time{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				now := func() time.Time { return time.Now().Add(-tc.skew) }

				first := tc.first
				if first == nil {
					first = beat("kausality-webhook", nil, now())
				}

				client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
					map[schema.GroupVersionResource]string{leases: "LeaseList"}, first)

				go func() {
					time.Sleep(ten - time.Millisecond)

					switch {
					case tc.renews:
						first = beat("kausality-webhook", nil, now())
					case tc.then != nil:
						first = tc.then
					}

					_ = client.Tracker().Update(leases, first, "kausality-system")
				}()

				start := time.Now()
				err := uninstallation{&cluster{client: client, home: "kausality-system"}}.stopped(t.Context())

				if took := time.Since(start); !errors.Is(err, tc.want) || took != tc.takes {
					t.Errorf("%s\nstopped: %v after %s, want %v after %s", tc.reason, err, took, tc.want, tc.takes)
				}

				time.Sleep(ten) // For who renews.
			})
		})
	}
}
