// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// fingerprint tells what an object says of held changes from anything else.
type fingerprint [16]byte

// Observe hears of an object that is there. Where something new is said of what is held of it, or
// of what was made of what is approved, its root is reconciled.
func (r *Reconciler) Observe(ctx context.Context, u *unstructured.Unstructured) error {
	drift := managed.DriftEntries(u, r.WithoutDrift)
	key, holds := pending.KeyOfObject(u), len(drift) > 0 || holds(u)
	if !holds && !r.index.involved(key, parentUID(u)) {
		return nil // Most objects, most of the time.
	}

	said := printOf(u, drift)
	if was, ok := r.index.known(key); ok && was.said == said && was.holds == holds {
		return nil
	}

	root, err := r.rootOf(ctx, u)
	if err != nil {
		return err
	}

	r.index.set(key, entry{root: root, uid: u.GetUID(), holds: holds, said: said})

	return nil
}

// Gone hears of an object that is not there any more.
func (r *Reconciler) Gone(gk schema.GroupKind, key types.NamespacedName) {
	r.index.gone(pending.Key{GroupKind: gk, Namespace: key.Namespace, Name: key.Name})
}

// holds reports whether something is held of an object, or says that something below it is, or
// was and is approved.
func holds(u *unstructured.Unstructured) bool {
	if allowance.CarriesApproval(u) {
		return true
	}

	if text := resource.Annotation(u, v1alpha1.AnnotationHeld); text != "" && strings.TrimSpace(text) != strings.TrimSpace(allowance.None) {
		return true
	}

	typ := v1alpha1.ConditionState
	if resource.IsClaim(u) {
		typ = v1alpha1.ConditionKausality
	}

	c, ok := resource.ConditionOf(u, typ)

	return ok && c.Status == string(metav1.ConditionFalse)
}

// parentUID is the UID of an object's controller; empty where it has none.
func parentUID(u *unstructured.Unstructured) types.UID {
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		return owner.UID
	}

	return ""
}

// printOf is the fingerprint of an object.
func printOf(u *unstructured.Unstructured, drift []v1alpha1.HeldChange) fingerprint {
	parent, _ := resource.ParentOf(u)
	annotation := func(key string) string { return resource.Annotation(u, key) }
	condition := func(typ string) []string {
		c, _ := resource.ConditionOf(u, typ)

		return []string{c.Status, c.Reason, c.Message}
	}

	raw, _ := json.Marshal([]any{ //nolint:errchkjson // It is text and truth values.
		u.GetUID(), parent, resource.Deleting(u),
		annotation(v1alpha1.AnnotationHeld), annotation(v1alpha1.AnnotationTrace),
		annotation(v1alpha1.AnnotationRecord), annotation(v1alpha1.AnnotationAllowances),
		condition(v1alpha1.ConditionState), condition(v1alpha1.ConditionKausality), drift,
	})
	sum := sha256.Sum256(raw)

	return fingerprint(sum[:len(fingerprint{})])
}
