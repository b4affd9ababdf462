// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/fn"
)

// serviceAccount is Crossplane's.
const serviceAccount = "system:serviceaccount:crossplane-system:crossplane"

// Namespaces of the objects. Nothing rewrites what is in the first; in the last
// one there is nothing that limits or quotas could refuse.
const (
	plain   = "fidelity"
	meshed  = "fidelity-meshed"
	limited = "fidelity-limited"
)

// patience is how long anything may take that happens at once as a rule.
const patience = 2 * time.Minute

var errNoSchema = errors.New("there is no schema")

// cluster is what all objects share.
type cluster struct {
	client    client.Client
	schemas   *schemas
	templates map[string]map[string]any
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	out := connected(t)
	out.templates = templates(t)

	for kind, template := range out.templates {
		out.templates[kind] = asMap(included(t, template))
	}

	out.furnish(t)

	return out
}

// connected is a cluster that is there as it is.
func connected(t *testing.T) *cluster {
	t.Helper()

	config := running.Config()
	config.QPS, config.Burst = -1, -1

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return &cluster{client: c, schemas: newSchemas(disco.OpenAPIV3())}
}

// furnish makes what objects need: their namespaces, the ServiceAccount of pods,
// and a kind of our own.
func (c *cluster) furnish(t *testing.T) {
	t.Helper()

	apply := func(obj client.Object) {
		t.Helper()

		if err := client.IgnoreAlreadyExists(c.client.Create(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range []string{plain, meshed, limited} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == meshed {
			ns.Labels = map[string]string{"rewrite": "all"}
		}

		apply(ns)
		apply(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}})
		apply(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Namespace: name}})
	}

	apply(&unstructured.Unstructured{Object: readYAML(t, "gadgets.yaml")})
	rewriting(t, c.client)

	// The kind is served, with its schema, and the webhook is asked.
	gadget := schema.GroupVersionKind{Group: "fidelity.example.org", Version: "v1", Kind: "Gadget"}

	var last error

	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		sch, err := newSchemas(c.schemas.client).sent(gadget)
		if err != nil || sch.GetOpenapiV3() == nil {
			last = errors.Join(errNoSchema, err)

			return false, nil
		}

		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "a"}}}
		u.SetGroupVersionKind(gadget)
		u.SetName("probe")
		u.SetNamespace(meshed)

		if last = c.client.Create(ctx, u, client.DryRunAll); last != nil {
			return false, nil //nolint:nilerr // Not yet.
		}

		size, _, err := unstructured.NestedString(u.Object, "spec", "size")

		return size == "A", err
	}); err != nil {
		t.Fatalf("waiting for the kind Gadget and the webhook: %v: %v", err, last)
	}
}

// compose makes an XR that composes an object of a wish.
func (c *cluster) compose(name string, wish map[string]any, old bool) *composite {
	xr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "large"}}}
	xr.SetAPIVersion("example.org/v1")
	xr.SetKind("XApp")
	xr.SetName(name)
	xr.SetUID(types.UID(fmt.Sprintf("uid-%s", name)))
	xr.SetGeneration(1)
	xr.SetLabels(map[string]string{"crossplane.io/composite": name})

	u := &unstructured.Unstructured{Object: wish}

	return &composite{
		crossplane: &crossplane{client: c.client, schemas: c.schemas, function: fn.New(logging.NewNopLogger()), old: old},
		xr:         xr, key: client.ObjectKeyFromObject(u), kind: u.GroupVersionKind(),
	}
}

// window is an upgrade window for mutations of a kind.
func window(kind string, mutations ...string) *unstructured.Unstructured {
	list := make([]any, len(mutations))
	for i, m := range mutations {
		list[i] = m
	}

	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"serviceAccount": serviceAccount, "validFrom": "2020-01-01T00:00:00Z", "validUntil": "2120-01-01T00:00:00Z",
			"allow": []any{map[string]any{"kind": kind, "relation": "Child", "mutations": list}},
		},
	}}
	u.SetAPIVersion("kausality.io/v1alpha1")
	u.SetKind("UpgradeAllowance")
	u.SetName("window")
	u.SetGeneration(1)
	u.SetLabels(policy.LabelsOfServiceAccount(serviceAccount))

	return u
}
