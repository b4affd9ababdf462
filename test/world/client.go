// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Connect makes a client that is as fast as it can, and tells nobody of warnings.
// It changes the config.
func Connect(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()

	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}

	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// ConnectAs makes a client of a person whom a stack knows.
func ConnectAs(t *testing.T, s *stack.Stack, person string) client.Client {
	t.Helper()

	config, err := s.ConfigFor(person)
	if err != nil {
		t.Fatal(err)
	}

	return Connect(t, config)
}

// Impersonate makes a client of somebody, by name and groups.
func Impersonate(t *testing.T, s *stack.Stack, user string, groups ...string) client.Client {
	t.Helper()

	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}

	return Connect(t, config)
}

// Prototype is an object of which nothing is known but its kind.
func Prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

// Merge is a merge patch of JSON text.
func Merge(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
