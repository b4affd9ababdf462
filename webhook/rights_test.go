// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/internal/access"
	"github.com/kausality-io/kausality-crossplane/webhook"
	"github.com/kausality-io/kausality-crossplane/webhook/cached"
)

// TestAParentThatMayNotBeReadIsNotWatched and what it decides about is refused only
// where an Enforcement insists; either way it is said which right is missing, and
// what gives it.
func TestAParentThatMayNotBeReadIsNotWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, enforcement string
		refused, rights     bool
	}{
		"Insists": {reason: "It fails closed.", enforcement: of("validationActions: [Deny]"), refused: true},
		"Ignores": {reason: "It fails open.", enforcement: of("validationActions: [Deny], failurePolicy: Ignore")},
		"Rights":  {reason: "With the right it is watched.", enforcement: of("validationActions: [Deny]"), refused: true, rights: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counting{cluster: enforcing(t, tc.enforcement)}
			c.informed = append(c.informed, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
			c.live = append(c.live, manifest(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: other}}"))
			c.policies = make([]v1alpha1.AllowancePolicy, 1)
			c.policies[0].Spec.Match = v1alpha1.Match{APIGroup: "apps", Kind: "Deployment", Fields: []string{"spec"}}
			c.broken = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errBoom)

			asked := 0
			may := access.Asking(func(_ context.Context, r right.Right) (bool, error) {
				asked++

				return tc.rights || r.Resource == "namespaces", nil
			}, func() time.Time { return time.Unix(0, 0) })

			j := c.judge(t, time.Now())
			j.Objects = cached.NewObjects(c, c, c.mapper(), may)
			url := serve(t, &webhook.Enforcer{Judge: j, Scaler: webhook.NewScaler(c.mapper())})

			for range 20 {
				rsp := post(t, url, twoReplicas(t))
				if rsp.Allowed == tc.refused {
					t.Fatalf("%s\nallowed %t: %v", tc.reason, rsp.Allowed, rsp.Result)
				}

				said := strings.Join(rsp.Warnings, " ")
				if tc.refused {
					said = rsp.Result.Message
				}

				if tc.rights {
					continue
				}

				for _, want := range []string{"the manager may not get, list and watch deployments.apps", "doctor --roles --for deployments.apps | kubectl apply -f -"} {
					if !strings.Contains(said, want) {
						t.Fatalf("%s\nno %q in %q", tc.reason, want, said)
					}
				}
			}

			if got := slices.Contains(c.watched, "Deployment"); got != tc.rights {
				t.Errorf("%s\nwatched: %v", tc.reason, c.watched)
			}

			if asked > 40 {
				t.Errorf("%s\n20 requests made %d questions", tc.reason, asked)
			}
		})
	}
}
