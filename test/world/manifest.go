// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Parse reads the objects of manifests, in YAML or JSON. Documents without
// anything in them do not count.
func Parse(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()

	var out []*unstructured.Unstructured

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}

		err := dec.Decode(u)
		if errors.Is(err, io.EOF) {
			return out
		}

		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}

		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// Apply applies an object, as soon as its kind is there. A policy is applied once
// the manager says that it is ready.
func Apply(t *testing.T, c client.Client, u *unstructured.Unstructured, opts ...client.ApplyOption) {
	t.Helper()

	opts = append(opts, client.FieldOwner("test"))

	Eventually(t, "applying "+u.GetName(), func(ctx context.Context) error {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), opts...)
		if err != nil || u.GetKind() != "AllowancePolicy" {
			return err
		}

		live := Prototype(u.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}

		if !resource.Ready(live) {
			return fmt.Errorf("%v: %w", live.Object["status"], ErrOther)
		}

		return nil
	})
}
