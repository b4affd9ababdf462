// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// The objects of the scenario.
const (
	claimName      = "my-database"
	claimNamespace = "default"
	ticket         = "INFRA-23232"
	hans           = "hans"
	anna           = "anna"
	hansUser       = "hans@example.com"
)

// Kinds and fields of the scenario.
const (
	kindClaim   = "DatabaseClaim"
	kindXR      = "XDatabase"
	kindManaged = "Object"
	fieldSize   = "spec.size"
	fieldData   = "spec.forProvider.manifest.data.size"
)

// Narrator prints what happens.
type Narrator interface {
	// Sayf tells one thing, in a sentence.
	Sayf(format string, args ...any)
	// Show shows a command's output or a part of an object.
	Show(text string)
}

// Step is one part of the scenario. Steps build on each other.
type Step struct {
	// Title says what the step shows.
	Title string
	// Run plays it; an error says what did not happen.
	Run func(ctx context.Context) error
}

// Scenario is one play on one stack.
type Scenario struct {
	stack    *stack.Stack
	client   client.Client
	narrator Narrator
	examples string

	xr, mr   string
	external client.ObjectKey
}

// New makes a play on a running stack, with the manifests of examples/ in a
// directory.
func New(s *stack.Stack, examples string, n Narrator) (*Scenario, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register kinds: %w", err)
		}
	}

	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	return &Scenario{stack: s, client: c, narrator: n, examples: examples}, nil
}

// Steps are the steps of the main job, in order.
func (s *Scenario) Steps() []Step {
	return []Step{
		{"A platform team sets up a gated database", s.setUp},
		{"hans creates a database with a ticket", s.create},
		{"hans changes its size, with the ticket", s.resize},
		{"Nobody else's change gets through, and everybody sees why", s.hold},
		{"Only Kausality moves the gate", s.guard},
		{"The XR carries its own allowances, not the Claim's", s.copied},
		{"Nobody can forge or remove an allowance", s.forge},
		{"Who did it?", s.trace},
	}
}

// gvk of the kinds of the scenario.
func claimKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: kindClaim}
}

func xrKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.org", Version: "v1alpha1", Kind: kindXR}
}

func mrKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: kindManaged}
}

func externalKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

// get reads an object live.
func (s *Scenario) get(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)

	if err := s.client.Get(ctx, key, u); err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", gvk.Kind, key.Name, err)
	}

	return u, nil
}

func (s *Scenario) claim(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.get(ctx, claimKind(), client.ObjectKey{Namespace: claimNamespace, Name: claimName})
}

func (s *Scenario) composite(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.get(ctx, xrKind(), client.ObjectKey{Name: s.xr})
}

func (s *Scenario) managed(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.get(ctx, mrKind(), client.ObjectKey{Name: s.mr})
}

func (s *Scenario) object(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.get(ctx, externalKind(), s.external)
}

// Eventually is [patience.Eventually].
func Eventually(ctx context.Context, what string, check func(ctx context.Context) error) error {
	return patience.Eventually(ctx, what, check)
}

// stays runs a check for a while, which has to go on passing.
func stays(ctx context.Context, d time.Duration, what string, check func(ctx context.Context) error) error {
	var failed error

	err := wait.PollUntilContextTimeout(ctx, patience.Interval, d, true, func(context.Context) (bool, error) {
		failed = check(ctx) // Not cut short by the end of our patience.

		return failed != nil, nil
	})
	if err == nil {
		return fmt.Errorf("%s did not stay: %w", what, failed)
	}

	return ctx.Err()
}

// manifest returns the path of a manifest of the example, from where kubectl
// runs.
func (s *Scenario) manifest(name string) string {
	return filepath.Join(filepath.Base(s.examples), "claim-with-ticket", name)
}

// readManifest reads a manifest of the example.
func (s *Scenario) readManifest(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(s.examples, "claim-with-ticket", name))
	if err != nil {
		return "", fmt.Errorf("cannot read manifest: %w", err)
	}

	return string(raw), nil
}
