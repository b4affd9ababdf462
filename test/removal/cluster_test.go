// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

const (
	root     = "../.."
	example  = root + "/examples/claim-with-ticket"
	shop     = "default"
	function = "function-kausality"
)

var errOther = errors.New("not as expected")

// cluster is the stack, as its administrator and hans see it.
type cluster struct {
	client.Client

	hans client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	connect := func(config *rest.Config, err error) client.Client {
		if err != nil {
			t.Fatal(err)
		}

		config.QPS = -1
		config.WarningHandler = rest.NoWarnings{}

		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}

		return c
	}

	return &cluster{Client: connect(running.Config(), nil), hans: connect(running.ConfigFor("hans"))}
}

func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()

	start := time.Now()
	if err := scenario.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}

	t.Logf("%s: %s", what, time.Since(start).Round(time.Millisecond))
}

// applyExample applies files of the example.
func (c *cluster) applyExample(t *testing.T, files ...string) {
	t.Helper()

	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(example, file))
		if err != nil {
			t.Fatal(err)
		}

		for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(u); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}

			eventually(t, "applying "+u.GetName(), func(ctx context.Context) error {
				err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership)
				if err != nil || u.GetKind() != "AllowancePolicy" {
					return err
				}

				live := prototype(u.GroupVersionKind())
				if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
					return err
				}

				if !resource.Ready(live) {
					return fmt.Errorf("%v: %w", live.Object["status"], errOther)
				}

				return nil
			})
		}
	}
}

// ungate takes the function out of the Composition.
func (c *cluster) ungate(t *testing.T) {
	t.Helper()

	u := prototype(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "xdatabases.example.org"}, u); err != nil {
		t.Fatal(err)
	}

	steps := slices.DeleteFunc(resource.List(u.Object, "spec", "pipeline"), func(v any) bool {
		step, _ := v.(map[string]any)

		return resource.String(step, "functionRef", "name") == function
	})

	if err := unstructured.SetNestedSlice(u.Object, steps, "spec", "pipeline"); err != nil {
		t.Fatal(err)
	}

	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// uninstall runs the command that removes Kausality.
func uninstall(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"uninstall", "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig")}, args...)
	out, err := exec.CommandContext(ctx, filepath.Join(running.BinDir(), "kubectl-kausality"), args...).CombinedOutput()

	return string(out), err //nolint:wrapcheck // The output says it all.
}

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	return u
}

func merge(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
