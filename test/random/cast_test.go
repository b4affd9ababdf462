// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Who may do what: Crossplane makes servers, hans changes and deletes them, anna
// may do neither.
const (
	crossplaneName = "system:serviceaccount:crossplane-system:crossplane"
	hansName       = "hans@example.com"
)

// What becomes of an edit that nobody may make; namespaces are named after it.
const (
	deny   = "deny"
	hold   = "hold"
	stored = "stored"
)

func serverKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "machines.example.org", Version: "v1", Kind: "Server"}
}

// cast is everybody who plays.
type cast struct {
	admin                  client.WithWatch
	crossplane, hans, anna client.Client
}

// newCast sets the stage, once, and returns who plays on it.
func newCast(t *testing.T) cast {
	t.Helper()

	c := cast{admin: world.Connect(t, running.Config()), hans: world.ConnectAs(t, running, "hans"), anna: world.ConnectAs(t, running, "anna")}

	config := running.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: crossplaneName, Groups: []string{"system:masters", "system:serviceaccounts", "system:authenticated"},
	}

	c.crossplane = world.Connect(t, config)

	setStage.Do(func() { errStage = c.setStage(t.Context()) })

	if errStage != nil {
		t.Fatal(errStage)
	}

	return c
}

var (
	setStage sync.Once
	errStage error
)

// setStage applies the manifests and waits until they are in force.
func (c cast) setStage(ctx context.Context) error {
	var text []byte

	for _, name := range []string{"testdata/servers.yaml", "testdata/racks.yaml"} {
		more, err := os.ReadFile(name)
		if err != nil {
			return err
		}

		text = append(append(text, "---\n"...), more...)
	}

	var objects []*unstructured.Unstructured

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}

		if len(u.Object) == 0 {
			continue
		}

		objects = append(objects, u)

		err := scenario.Eventually(ctx, "applying "+u.GetName(), func(ctx context.Context) error {
			return c.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership)
		})
		if err != nil {
			return err
		}
	}

	err := scenario.Eventually(ctx, "policies in force", func(ctx context.Context) error {
		for _, u := range objects {
			live := u.DeepCopy()
			if err := c.admin.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
				return err
			}

			if u.GroupVersionKind().Group == v1alpha1.GroupVersion().Group && !resource.Ready(live) {
				return fmt.Errorf("%s %q is not ready: %w", u.GetKind(), u.GetName(), world.ErrOther)
			}
		}

		return nil
	})
	if err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "enforcement", c.inForce); err != nil {
		return err
	}

	// The guards are changed one after the other. The API server reads all of them each second.
	//
	// Source: k8s.io/apiserver pkg/admission/plugin/policy/generic/policy_source.go, policyRefreshInterval.
	const twice = 2 * time.Second

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(twice):
		return nil
	}
}

// inForce reports whether the API server asks the webhook and the guards: it learns
// of them with a delay.
func (c cast) inForce(ctx context.Context) error {
	for _, ns := range []string{deny, hold, stored} {
		u := newServer(ns, "probe", nil, parameters{"size": int64(1)})
		if err := c.crossplane.Create(ctx, u, client.DryRunAll); err != nil {
			return err
		}

		if resource.Annotation(u, v1alpha1.AnnotationAllowances) == "" {
			return fmt.Errorf("nothing is stamped in %q: %w", ns, world.ErrOther)
		}

		unstructured.RemoveNestedField(u.Object, "spec", "managementPolicies")
		u.SetResourceVersion("")
		u.SetUID("")

		if err := c.crossplane.Create(ctx, u, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("nothing is guarded in %q: %w", ns, errors.Join(err, world.ErrOther))
		}
	}

	return nil
}

// parameters are what an external object is to be like.
type parameters = map[string]any

// newServer is a managed resource as the composition function would have it made.
func newServer(namespace, name string, traits []any, p parameters) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe", "LateInitialize", "Create", "Update"},
		"traits":             traits,
		"forProvider":        runtimeCopy(p),
		"initProvider":       map[string]any{"image": image},
	}}}
	if traits == nil {
		unstructured.RemoveNestedField(u.Object, "spec", "traits")
	}

	u.SetGroupVersionKind(serverKind())
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: `{"v":1,"policies":["*"]}`})

	return u
}

// image is what servers are made with.
const image = "golden"

func runtimeCopy(p parameters) parameters {
	return (&unstructured.Unstructured{Object: p}).DeepCopy().Object
}
