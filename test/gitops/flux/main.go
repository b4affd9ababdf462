// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// flux reads the objects of a file, or applies them, as Flux's controller of
// Kustomizations does: with its library, its field manager, its labels and the
// common metadata of the Kustomization. KUBECONFIG says where, --as who it is.
//
//	flux [--as=USER] diff|apply|reconcile KUSTOMIZATION FILE
//
// For each object it prints what Flux calls it: created, configured or unchanged. By
// reconcile it applies them, and prunes, time and again until its standard input ends,
// see [reconciling]. Without --as it is the service account that the Kustomization names.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	ssautils "github.com/fluxcd/pkg/ssa/utils"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// controller is the field manager.
const controller = "kustomize-controller"

var errUsage = errors.New("usage: flux [--as=USER] diff|apply|reconcile KUSTOMIZATION FILE")

func main() {
	as := flag.String("as", "", "`user` to be")
	flag.Parse()

	if err := run(context.Background(), *as, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "flux:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, as string, args []string) error {
	if len(args) != 3 {
		return errUsage
	}

	k, err := load(args[1])
	if err != nil {
		return err
	}

	if as == "" && k.Spec.ServiceAccountName != "" {
		as = "system:serviceaccount:" + k.GetNamespace() + ":" + k.Spec.ServiceAccountName
	}

	m, err := manager(as)
	if err != nil {
		return err
	}

	if args[0] == "reconcile" {
		return (&reconciling{ResourceManager: m, kustomization: k, file: args[2]}).run(ctx)
	}

	raw, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}

	objects, err := build(k, m, raw)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", args[2], err)
	}

	switch args[0] {
	case "diff":
		return diff(ctx, m, objects)
	case "apply":
		return apply(ctx, m, objects)
	}

	return errUsage
}

// load reads a Kustomization, strictly.
func load(file string) (*kustomizev1.Kustomization, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	k := &kustomizev1.Kustomization{}
	if err := yaml.UnmarshalStrict(raw, k); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", file, err)
	}

	return k, nil
}

// build makes objects as the Kustomization wants them.
func build(k *kustomizev1.Kustomization, m *ssa.ResourceManager, raw []byte) ([]*unstructured.Unstructured, error) {
	objects, err := ssautils.ReadObjects(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}

	if err := normalize.UnstructuredList(objects); err != nil {
		return nil, fmt.Errorf("cannot normalize: %w", err)
	}

	if common := k.Spec.CommonMetadata; common != nil {
		ssautils.SetCommonMetadata(objects, common.Labels, common.Annotations)
	}

	m.SetOwnerLabels(objects, k.GetName(), k.GetNamespace())

	return objects, nil
}

func manager(as string) (*ssa.ResourceManager, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}

	config.Impersonate = rest.ImpersonationConfig{UserName: as}

	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	return ssa.NewResourceManager(c, nil, ssa.Owner{Field: controller, Group: kustomizev1.GroupVersion.Group}), nil
}

// diff says of each object whether Flux finds that it has drifted; to standard
// error how.
func diff(ctx context.Context, m *ssa.ResourceManager, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		entry, live, merged, err := m.Diff(ctx, u, ssa.DefaultDiffOptions())
		if err != nil {
			return fmt.Errorf("cannot compare: %w", err)
		}

		fmt.Println(entry)

		if live != nil {
			fmt.Fprintf(os.Stderr, "-live, +merged:\n%s", cmp.Diff(live.Object, merged.Object))
		}
	}

	return nil
}

// apply applies the objects, and says what of each was done.
func apply(ctx context.Context, m *ssa.ResourceManager, objects []*unstructured.Unstructured) error {
	changes, err := m.ApplyAll(ctx, objects, applying())
	if err != nil {
		return fmt.Errorf("cannot apply: %w", err)
	}

	for _, entry := range changes.Entries {
		fmt.Println(&entry)
	}

	return nil
}

// applying takes over what was applied by kubectl.
func applying() ssa.ApplyOptions {
	opts := ssa.DefaultApplyOptions()
	opts.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}

	return opts
}
