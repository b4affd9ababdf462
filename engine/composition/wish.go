// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// errTooLarge is the problem with a wish that cannot be recorded.
var errTooLarge = errors.New("no room to record its whole desired state: fields that the API server stores in another form may be held; " +
	"compose less in one resource or one composite resource")

// secret reports whether a resource is a Secret. What it is wished to be is not
// recorded, not even as hashes, for they could be guessed.
func secret(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// encodeSecret writes the stringData of a Secret as data, as the API server
// stores it: what is applied is then what is stored.
func encodeSecret(u *unstructured.Unstructured) {
	if !secret(u) {
		return
	}

	text, _ := u.Object["stringData"].(map[string]any)
	if _, ok := u.Object["stringData"]; !ok {
		return
	}

	data := maps.Clone(resource.Map(u.Object, "data"))
	if data == nil && len(text) > 0 {
		data = make(map[string]any, len(text))
	}

	for key, v := range text {
		s, ok := v.(string)
		if !ok {
			return // Of no Secret that the API server takes; it is to say so.
		}

		data[key] = base64.StdEncoding.EncodeToString([]byte(s))
	}

	if data != nil {
		u.Object["data"] = data
	}

	delete(u.Object, "stringData")
}

// record writes the record of a wish on what is applied.
func (r composed) record(room int, u *unstructured.Unstructured, rec *wish.Record) []error {
	if secret(u) {
		annotate(u, v1alpha1.AnnotationWish, "")

		return nil
	}

	text, err := rec.Format(u.GetAPIVersion(), u.GetKind())
	if err == nil && (rec.Cut() > 0 || len(text) > room) {
		err = errTooLarge
	}

	if len(text) > room {
		text = ""
	}

	annotate(u, v1alpha1.AnnotationWish, text)

	if err != nil {
		return []error{fmt.Errorf("composed resource %q, %s: %w", r.Name, u.GetKind(), err)}
	}

	return nil
}

// keepRecord is record of a wish that is as it was: the text stays.
func (r composed) keepRecord(room int, u *unstructured.Unstructured, rec *wish.Record) []error {
	if text, plain := wish.TextOf(r.Observed); plain && len(text) <= room && !secret(u) {
		annotate(u, v1alpha1.AnnotationWish, text)

		return nil
	}

	return r.record(room, u, rec)
}

func inObserved(u *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s: %w", condition.Describe(u), err)
}

// delegated says of which fields of a resource the last change began with a
// person or controller that a policy let change the resource itself. What
// Crossplane did by itself, in a window or by an exception, began with nobody
// else.
func (r composed) delegated() func(change.Path) bool {
	u := r.Observed

	entries, err := allowance.ParseTrace(u)
	if err != nil {
		return nil // Reported with the decision.
	}

	return func(path change.Path) bool {
		i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return change.FieldCovers(e.Field, path) })
		if i < 0 || len(entries[i].Trace) != 1 ||
			entries[i].Initiator == r.user || strings.HasPrefix(entries[i].Initiator, input.InitiatorOfWindow("")) {
			return false
		}

		hop := entries[i].Trace[0]

		return hop.Kind == u.GetKind() && hop.Name == resource.Name(u)
	}
}
