// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// functionStep starts a function that is not ours, and registers it.
func (s *Stack) functionStep(name string, port int) step {
	return func(ctx context.Context) error {
		return s.runFunction(ctx, command{name: name, path: s.tools.Binary(name)}, port)
	}
}

// startOtherFunctions builds and starts the functions that the options name.
func (s *Stack) startOtherFunctions(ctx context.Context) error {
	root, err := repository()
	if err != nil {
		return err
	}
	ports, err := freePorts(len(s.options.Functions))
	if err != nil {
		return err
	}
	for i, name := range slices.Sorted(maps.Keys(s.options.Functions)) {
		path := s.path("run", "bin", name)
		if err := (goCommand{dir: root}).build(ctx, path, s.options.Functions[name]); err != nil {
			return fmt.Errorf("cannot build function %q: %w", name, err)
		}
		if err := s.runFunction(ctx, command{name: name, path: path}, ports[i]); err != nil {
			return err
		}
	}
	return nil
}

// runFunction starts a function with a certificate Crossplane trusts, and registers it.
func (s *Stack) runFunction(ctx context.Context, c command, port int) error {
	root, _, err := s.secretKeyPair(ctx, rootCASecret)
	if err != nil {
		return err
	}
	ca, err := parseAuthority(root)
	if err != nil {
		return err
	}
	serving, err := ca.serving(c.name)
	if err != nil {
		return err
	}
	certs := s.path("run", c.name)
	if err := serving.write(certs, ca.pem); err != nil {
		return err
	}
	c.args = append([]string{"--address=" + address(port), "--tls-certs-dir=" + certs}, c.args...)
	c.probe = Probe{Address: address(port)}
	return parallel(ctx,
		func(ctx context.Context) error { return s.startProcess(ctx, c) },
		func(ctx context.Context) error { return s.registerFunction(ctx, c.name, address(port)) },
	)
}

// registerFunction tells Crossplane about a function: it takes the endpoint from the status of the
// active revision, which the package manager would write. That one is asked to keep its hands off by an
// annotation, as it would look the package up.
func (s *Stack) registerFunction(ctx context.Context, name, endpoint string) error {
	image := "stack.invalid/" + name + ":local"
	function := packageObject("Function", name, map[string]any{"package": image, "packagePullPolicy": "Never"})
	if err := s.apply(ctx, function); err != nil {
		return err
	}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(function), function); err != nil {
		return fmt.Errorf("cannot register function %q: %w", name, err)
	}
	revision := packageObject("FunctionRevision", name+"-1", map[string]any{
		"desiredState":      "Active",
		"image":             image,
		"packagePullPolicy": "Never",
		"revision":          int64(1),
	})
	revision.SetLabels(map[string]string{"pkg.crossplane.io/package": name})
	revision.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(function, function.GroupVersionKind()),
	})
	if err := s.apply(ctx, revision); err != nil {
		return err
	}
	status := map[string]any{
		"endpoint":   endpoint,
		"conditions": conditions("RevisionHealthy", "RuntimeHealthy"),
	}
	if !s.options.CrossplaneBefore2 {
		status["capabilities"] = []any{"composition"}
	}
	if err := s.patchStatus(ctx, revision, status); err != nil {
		return err
	}
	return s.patchStatus(ctx, function, map[string]any{"conditions": conditions("Installed", "Healthy")})
}

// packageObject returns an object of the package manager's that it is to leave alone.
func packageObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: kind})
	u.SetName(name)
	u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	return u
}

// conditions returns conditions that are true.
func conditions(types ...string) []any {
	all := make([]any, 0, len(types))
	for _, t := range types {
		all = append(all, map[string]any{
			"type":               t,
			"status":             "True",
			"reason":             "RunsInStack",
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		})
	}
	return all
}

// patchStatus writes a part of an object's status.
func (s *Stack) patchStatus(ctx context.Context, u *unstructured.Unstructured, status map[string]any) error {
	patch := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	patch.SetGroupVersionKind(u.GroupVersionKind())
	patch.SetName(u.GetName())
	base := patch.DeepCopy()
	unstructured.RemoveNestedField(base.Object, "status")
	if err := s.client.Status().Patch(ctx, patch, client.MergeFrom(base), fieldOwner); err != nil {
		return fmt.Errorf("cannot write status of %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}
