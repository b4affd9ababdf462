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
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// Our own programs, by the names of their binaries.
const (
	functionKausality = "function-kausality"
	kausalityManager  = "kausality-manager"
	kubectlKausality  = "kubectl-kausality"
)

// buildOwn builds our own programs.
func (s *Stack) buildOwn(ctx context.Context) error {
	s.progressf("compiling %s, %s and %s", functionKausality, kausalityManager, kubectlKausality)

	return s.buildPrograms(ctx, "bin", "", functionKausality, kausalityManager, kubectlKausality)
}

// buildPrograms builds programs of ours into a directory below run/, with the version that they are to say
// they have, if any. It does so in the cache, where nothing is linked anew that has not changed, and takes
// copies, so that building again does not change a running stack.
func (s *Stack) buildPrograms(ctx context.Context, into, version string, names ...string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	c, err := newCache()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(c.dir, "own", hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot build our programs: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	bin := filepath.Join(dir, into) + string(filepath.Separator)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("cannot build our programs: %w", err)
	}
	var args []string
	if version != "" {
		args = append(args, "-ldflags=-X main.version="+version)
	}
	for _, name := range names {
		args = append(args, "./cmd/"+name)
	}
	if err := (goCommand{dir: root}).build(ctx, bin, args...); err != nil {
		return fmt.Errorf("cannot build our programs: %w", err)
	}
	if err := os.CopyFS(s.path("run", into), os.DirFS(bin)); err != nil {
		return fmt.Errorf("cannot build our programs: %w", err)
	}
	return nil
}

// startFunction starts our function, and registers it.
func (s *Stack) startFunction(ctx context.Context) error {
	return s.runFunction(ctx, command{
		name: functionKausality,
		path: s.path("run", "bin", functionKausality),
		args: recorded(functionKausality, slices.Concat([]string{"--metrics-address="}, s.options.FunctionFlags)),
	}, s.ports.function)
}

// applyOwn applies our CRDs, and what gives the manager its rights.
func (s *Stack) applyOwn(ctx context.Context) error {
	root, err := repository()
	if err != nil {
		return err
	}
	if err := s.applyCRDs(ctx, filepath.Join(root, "package", "crds"), ""); err != nil {
		return err
	}
	rbac, err := readManifests(filepath.Join(root, "package", "rbac"))
	if err != nil {
		return err
	}
	if err := s.apply(ctx, rbac...); err != nil {
		return err
	}
	return s.govern(ctx)
}

// startManager starts the manager, and waits until the API server asks it.
func (s *Stack) startManager(ctx context.Context) error {
	var flags []string
	if s.options.DecisionLog {
		log, err := s.decisionLog()
		if err != nil {
			return err
		}
		flags = append(flags, log)
	}
	c, err := s.managerCommand(ctx, kausalityManager, managerPorts{
		webhook: s.ports.managerWebhook, health: s.ports.managerHealth, metrics: s.ports.managerMetrics,
	}, flags)
	if err != nil {
		return err
	}
	if err := s.startProcess(ctx, c); err != nil {
		return err
	}
	return s.enforcing(ctx)
}

// ManagerMetricsURL is where the manager serves its metrics, in Prometheus' text format.
func (s *Stack) ManagerMetricsURL() string {
	return "http://" + address(s.ports.managerMetrics) + "/metrics"
}

// BinDir is where this project's programs, built for this stack, are.
func (s *Stack) BinDir() string { return s.path("run", "bin") }

// enforcing waits until the API server asks the webhook: it learns of new configurations with a delay,
// and the one about our own kinds fails open.
func (s *Stack) enforcing(ctx context.Context) error {
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kausality.io/v1alpha1",
		"kind":       "AllowancePolicy",
		"metadata":   map[string]any{"name": "probe"},
		"spec": map[string]any{
			"match": map[string]any{"kind": "Probe", "fields": []any{"spec["}},
			"allow": []any{map[string]any{"kind": "Probe", "mutations": []any{"spec"}}},
		},
	}}
	err := wait.PollUntilContextTimeout(ctx, applyPoll, patience.Limit, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsInvalid(s.client.Create(ctx, probe.DeepCopy(), client.DryRunAll)), nil
	})
	if err != nil {
		return fmt.Errorf("cannot get the API server to ask our webhook: %w", err)
	}
	return nil
}
