// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// every is the interval, in place of the Kustomization's.
const every = 200 * time.Millisecond

// What a round comes to.
const (
	inSync  = "InSync"
	changed = "Changed"
	failed  = "Failed"
)

// reconciling is a Kustomization that is reconciled: as long as standard input goes on, the
// objects of the file are applied, and pruned where the file has had them. After each round it
// prints the first characters of the file's digest, which stand for the commit; InSync, Changed
// or Failed; and a message.
type reconciling struct {
	*ssa.ResourceManager

	kustomization *kustomizev1.Kustomization
	file          string
	// inventory is of what was applied last.
	inventory inventory
}

// inventory is what a Kustomization has applied, with the versions of its API.
type inventory map[object.ObjMetadata]string

func (r *reconciling) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		cancel()
	}()

	for ctx.Err() == nil {
		raw, err := os.ReadFile(r.file)
		if err != nil {
			return err
		}

		state, message := r.round(ctx, raw)
		fmt.Printf("%.7x %s %s\n", sha256.Sum256(raw), state, strings.ReplaceAll(message, "\n", " "))

		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}

	return nil
}

// round is one reconciliation.
func (r *reconciling) round(ctx context.Context, raw []byte) (state, message string) {
	changes, err := r.reconcile(ctx, raw)
	if err != nil {
		return failed, err.Error()
	}

	var did []string

	for _, entry := range changes.Entries {
		if entry.Action != ssa.UnchangedAction && entry.Action != ssa.SkippedAction {
			did = append(did, entry.String())
		}
	}

	if len(did) > 0 {
		return changed, strings.Join(did, ", ")
	}

	return inSync, ""
}

// reconcile applies what there is, and prunes what is not there any more. Where something
// cannot be applied nothing is pruned, and the inventory stays.
func (r *reconciling) reconcile(ctx context.Context, raw []byte) (*ssa.ChangeSet, error) {
	objects, err := build(r.kustomization, r.ResourceManager, raw)
	if err != nil {
		return nil, err
	}

	// 1. Apply.
	out := ssa.NewChangeSet()

	if len(objects) > 0 {
		changes, err := r.ApplyAllStaged(ctx, objects, applying())
		if err != nil {
			return nil, err
		}

		out.Append(changes.Entries)
	}

	// 2. Prune.
	before := r.inventory
	r.inventory = inventory{}

	for _, entry := range out.Entries {
		r.inventory[entry.ObjMetadata] = entry.GroupVersion
	}

	if !r.kustomization.Spec.Prune {
		return out, nil
	}

	var stale []*unstructured.Unstructured

	for id, version := range before {
		if _, there := r.inventory[id]; there {
			continue
		}

		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: id.GroupKind.Group, Version: version, Kind: id.GroupKind.Kind})
		u.SetNamespace(id.Namespace)
		u.SetName(id.Name)
		stale = append(stale, u)
	}

	opts := ssa.DefaultDeleteOptions()
	opts.Inclusions = r.GetOwnerLabels(r.kustomization.GetName(), r.kustomization.GetNamespace())

	deleted, err := r.DeleteAll(ctx, stale, opts)
	if err != nil {
		return nil, errors.Join(errPrune, err)
	}

	out.Append(deleted.Entries)

	return out, nil
}

var errPrune = errors.New("cannot prune")
