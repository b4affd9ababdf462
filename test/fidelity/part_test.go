// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// parted is a Deployment with choices: one of several strategies, sources of a
// volume and of a variable, and handlers of a probe.
const parted = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: ` + plain + `}
spec:
  replicas: 0
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: data, emptyDir: {medium: Memory}}]
      containers:
      - name: web
        image: web:1
        env: [{name: LEVEL, value: info}]
        livenessProbe: {httpGet: {path: /, port: 80}}
`

// withNamespace is a cluster with the namespace that nothing is rewritten in.
func withNamespace(t *testing.T) *cluster {
	t.Helper()

	c := connected(t)
	if err := client.IgnoreAlreadyExists(c.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plain}})); err != nil {
		t.Fatal(err)
	}

	return c
}

// asMade is a new composite whose wish is settled.
func asMade(t *testing.T, c *cluster, name, wish string) *play {
	t.Helper()

	p := &play{cluster: c, rng: rand.New(rand.NewPCG(1, 1)), counts: map[string]int{}}
	p.wish = decoded(t, strings.ReplaceAll(wish, "NAME", name))
	p.c = c.compose("x-"+name, p.wish, false)

	message, err := p.settle(t.Context(), p.wish)
	if err != nil || !settled.MatchString(message) {
		t.Fatalf("%q: %v, %v", message, err, p.faults)
	}

	if err := p.rest(t.Context(), "after it was composed"); err != nil {
		t.Fatal(err, p.faults)
	}

	return p
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()

	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return asMap(fixture.Decoded(out))
}

// TestWhatIsHeldInPartIsValid allows a part of a change only: what is then left
// of it must be something that the API server takes.
func TestWhatIsHeldInPartIsValid(t *testing.T) {
	c := withNamespace(t)

	for name, tc := range map[string]struct {
		from, to string
		allowed  []string
		arrives  bool
	}{
		"strategy-type":       {"type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}", "type: Recreate", []string{"spec.strategy.type"}, false},
		"strategy-parameters": {"type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}", "type: Recreate", []string{"spec.strategy.rollingUpdate"}, false},
		"strategy-none":       {"type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}", "type: Recreate", []string{"spec.paused"}, false},
		"strategy":            {"type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}", "type: Recreate", []string{"spec.strategy"}, true},
		"volume-new":          {"emptyDir: {medium: Memory}", "configMap: {name: data}", []string{"spec.template.spec.volumes[*].configMap"}, false},
		"volume-old":          {"emptyDir: {medium: Memory}", "configMap: {name: data}", []string{"spec.template.spec.volumes[*].emptyDir"}, false},
		"variable-new": {
			"value: info", "valueFrom: {configMapKeyRef: {name: a, key: b}}", []string{"spec.template.spec.containers[*].env[*].valueFrom"}, false,
		},
		"variable-old": {"value: info", "valueFrom: {configMapKeyRef: {name: a, key: b}}", []string{"spec.template.spec.containers[*].env[*].value"}, false},
		"probe-new":    {"httpGet: {path: /, port: 80}", "tcpSocket: {port: 80}", []string{"spec.template.spec.containers[*].livenessProbe.tcpSocket"}, false},
		"probe": {
			"httpGet: {path: /, port: 80}", "tcpSocket: {port: 80}", []string{"spec.template.spec.containers[*].livenessProbe"}, true,
		},
		"probe-old": {"httpGet: {path: /, port: 80}", "tcpSocket: {port: 80}", []string{"spec.template.spec.containers[*].livenessProbe.httpGet"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := asMade(t, c, "part-"+name, parted)
			changed := decoded(t, strings.NewReplacer("NAME", "part-"+name, tc.from, tc.to).Replace(parted))

			before, err := p.c.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			p.c.required = append(p.c.required, window("Deployment", tc.allowed...))

			for range 2 {
				rsp, err := p.pass(t.Context(), changed)
				if err != nil {
					t.Fatal(err, p.faults)
				}

				if held := fixture.Holds(said(rsp)); held == tc.arrives {
					t.Errorf("it says: %s", said(rsp))

					break
				}

				if tc.arrives {
					break
				}
			}

			after, err := p.c.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if different(before, after) != tc.arrives {
				t.Errorf("-before, +after:\n%s", difference(before, after))
			}
		})
	}
}

// TestAnotherXRsObjectStaysAsItIs has two XRs compose one object.
func TestAnotherXRsObjectStaysAsItIs(t *testing.T) {
	ctx := t.Context()
	p := asMade(t, withNamespace(t), "shared", parted)

	before, err := p.c.observe(ctx)
	if err != nil {
		t.Fatal(err)
	}

	// Crossplane shows an XR nothing that another one controls.
	other := p.cluster.compose("x-other", p.wish, false)
	wish := decoded(t, strings.NewReplacer("NAME", "shared", "web:1", "web:2").Replace(parted))

	req, err := other.request(nil, wish)
	if err != nil {
		t.Fatal(err)
	}

	rsp, err := other.function.RunFunction(ctx, req)
	if err != nil {
		t.Fatal(err)
	}

	desired := rsp.GetDesired().GetResources()[resourceName]
	if desired == nil {
		t.Fatalf("it is not wished: %s", said(rsp))
	}

	if _, err := other.patch(ctx, desired.GetResource().AsMap(), before); !apierrors.IsInvalid(err) {
		t.Errorf("applied by another XR: %v, want that it is invalid", err)
	}

	after, err := p.c.observe(ctx)
	if err != nil {
		t.Fatal(err)
	}

	if diff := written(before, after); diff != "" {
		t.Errorf("-before, +after:\n%s", diff)
	}

	if err := p.rest(ctx, "after another XR wished it"); err != nil {
		t.Error(p.faults)
	}
}

// upgrade does what Crossplane does once to what it never applied.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/ssa/managed_fields.go.
func (p *play) upgrade(ctx context.Context) error {
	u, err := p.c.observe(ctx)
	if err != nil {
		return err
	}

	managed := map[string]int{}
	for i, e := range u.GetManagedFields() {
		managed[e.Manager] = i
	}

	_, applied := managed[p.c.manager()]
	i, first := managed["before-first-apply"]

	patch := `{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}`

	switch {
	case applied && !first:
		return nil
	case applied:
		patch = fmt.Sprintf(`{"op": "remove", "path": "/metadata/managedFields/%d"}`, i)
	}

	text := fmt.Sprintf(`[%s, {"op": "replace", "path": "/metadata/resourceVersion", "value": %q}]`, patch, u.GetResourceVersion())

	return p.client.Patch(ctx, u, client.RawPatch(types.JSONPatchType, []byte(text)))
}

// TestCrossplanesUpgradeOfManagedFieldsEnds takes over what an older Crossplane
// composed, and what was restored, while something is held.
func TestCrossplanesUpgradeOfManagedFieldsEnds(t *testing.T) {
	ctx := t.Context()
	c := withNamespace(t)

	for name, image := range map[string]string{"upgraded": "web:1", "upgraded-held": "web:2"} {
		t.Run(name, func(t *testing.T) {
			wish := decoded(t, strings.ReplaceAll(parted, "NAME", name))
			p := &play{cluster: c, rng: rand.New(rand.NewPCG(1, 1)), counts: map[string]int{}, wish: wish}
			p.c = c.compose("x-"+name, wish, false)

			made, err := p.c.patch(ctx, wish, nil, client.DryRunAll)
			if err != nil {
				t.Fatal(err)
			}

			made.SetManagedFields(nil)
			made.SetResourceVersion("")
			made.SetUID("")

			if err := p.client.Create(ctx, made, client.FieldOwner("crossplane")); err != nil {
				t.Fatal(err)
			}

			// It was recorded before that there is no baseline to take.
			p.c.xr.SetAnnotations(map[string]string{annotationInitialized: `{"v":1}`})
			p.c.xr.Object["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": "KausalityState", "status": "True", "message": `{"v":1,"progress":{"phase":"Settled","generation":1,"settled":{"generation":1}}}`,
			}}}

			wish = decoded(t, strings.NewReplacer("NAME", name, "web:1", image).Replace(parted))

			for range 4 {
				rsp, err := p.c.run(ctx, wish)
				if err != nil {
					t.Fatal(err)
				}

				if held := fixture.Holds(said(rsp)); held != (image == "web:2") {
					t.Errorf("it says: %s", said(rsp))
				}

				if err := errors.Join(p.upgrade(ctx), p.c.apply(ctx, rsp)); err != nil && !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
			}

			after, err := p.c.observe(ctx)
			if err != nil {
				t.Fatal(err)
			}

			for _, e := range after.GetManagedFields() {
				if e.Manager != p.c.manager() {
					t.Errorf("%s still manages fields", e.Manager)
				}
			}

			p.wish = wish

			if image == "web:1" {
				if err := p.rest(ctx, "after the upgrade"); err != nil {
					t.Error(p.faults)
				}
			}

			if different(made, after) {
				t.Errorf("-before, +after:\n%s", difference(made, after))
			}
		})
	}
}
