// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

var errNotUnderstood = errors.New("it is of a form that this version does not know")

// ParseRecord reads kausality.io/record. The error names the annotation.
func ParseRecord(u *unstructured.Unstructured) (v1alpha1.ObjectRecord, error) {
	out, text := v1alpha1.ObjectRecord{}, resource.Annotation(u, v1alpha1.AnnotationRecord)
	if text == "" {
		return out, nil
	}

	err := json.Unmarshal([]byte(text), &out)
	if err == nil && out.V != v1alpha1.RecordVersion {
		err = errNotUnderstood
	}

	if err != nil {
		return v1alpha1.ObjectRecord{}, fmt.Errorf("cannot parse annotation %q: %w", v1alpha1.AnnotationRecord, err)
	}

	return out, nil
}

// FormatRecord writes a record; empty where it says nothing.
func FormatRecord(rec v1alpha1.ObjectRecord) string {
	if rec.Request == "" && len(rec.Used)+len(rec.Withheld)+len(rec.Windows) == 0 {
		return ""
	}

	rec.V = v1alpha1.RecordVersion
	raw, _ := json.Marshal(rec) //nolint:errchkjson // It is of texts.

	return string(raw)
}

// UseOf is the use of an allowance.
func UseOf(a v1alpha1.Allowance) v1alpha1.Use {
	if OfApproval(a) {
		return v1alpha1.Use{Approval: a.Approval, Digest: a.Digest}
	}

	return v1alpha1.Use{ID: a.ID, Field: Field(a)}
}

// Used reports whether an object has used an allowance of its parent.
func Used(rec v1alpha1.ObjectRecord, a v1alpha1.Allowance) bool {
	return slices.Contains(rec.Used, UseOf(a))
}

// AddUses adds uses to a record, and leaves out those of allowances that the parent carries no longer. One that is not of an
// approval stays where all is true: a composition function does not tell of these, and writes nothing for them.
func AddUses(rec v1alpha1.ObjectRecord, uses []v1alpha1.Use, carried []v1alpha1.Allowance, all bool) v1alpha1.ObjectRecord {
	var out []v1alpha1.Use

	for i, use := range slices.Concat(rec.Used, uses) {
		stays := all && i < len(rec.Used) && use.Approval == "" ||
			slices.ContainsFunc(carried, func(a v1alpha1.Allowance) bool { return UseOf(a) == use })
		if stays && !slices.Contains(out, use) {
			out = append(out, use)
		}
	}

	rec.Used = out

	return rec
}

// AddWindow adds a window to a record.
func AddWindow(rec v1alpha1.ObjectRecord, uid types.UID) v1alpha1.ObjectRecord {
	others := slices.DeleteFunc(slices.Clone(rec.Windows), func(other types.UID) bool { return other == uid })
	rec.Windows = slices.Concat([]types.UID{uid}, others)
	rec.Windows = rec.Windows[:min(len(rec.Windows), v1alpha1.MaxWindows)]

	return rec
}
