// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// cluster is the control plane, as its administrator sees it.
type cluster struct {
	client.Client

	// programs are those that were taken out of images, by image.
	programs map[string]string
}

func connect(t *testing.T, config *rest.Config, err error) *cluster {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}

	return &cluster{Client: world.Connect(t, config), programs: map[string]string{}}
}

// apply applies manifests, once their kinds are there, as kubectl does with
// --server-side and --force-conflicts.
func (c *cluster) apply(t *testing.T, raw []byte) {
	t.Helper()

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := dec.Decode(obj); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}

		if obj.Object == nil {
			continue
		}

		world.Eventually(t, "applying "+obj.GetName(), func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership)
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()

	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return raw
}

func prototype(group, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})

	return u
}

// condition waits until a condition of an object is true.
func (c *cluster) condition(t *testing.T, u *unstructured.Unstructured, kind string) {
	t.Helper()

	world.Eventually(t, fmt.Sprintf("%s of %s %s", kind, u.GetKind(), u.GetName()), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}

		if got, ok := resource.ConditionOf(u, kind); !ok || got.Status != "True" {
			return fmt.Errorf("conditions: %v: %w", resource.Map(u.Object, "status")["conditions"], world.ErrOther)
		}

		return nil
	})
}
