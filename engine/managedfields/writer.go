// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Writer is a field manager, and when it last wrote anything.
type Writer struct {
	// Manager is its name: that of a program, as a rule, and of no user.
	Manager string
	// Time of the last write under that name; zero where it is not recorded.
	Time time.Time
}

// WriterOf is who manages the field at a path of a live object; of several, who wrote
// last. False where managedFields do not say.
func WriterOf(u *unstructured.Unstructured, path change.Path) (Writer, bool) {
	all, err := Of(u, "")
	if err != nil {
		return Writer{}, false
	}

	var (
		last  Writer
		found bool
	)

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, _ := e.(map[string]any)
		own := None()

		if addFields(resource.Map(m, "fieldsV1"), own.Own) != nil {
			continue
		}

		if its := (Fields{Own: own.Own, All: all.All, Scaled: own.Scaled}); !its.Manages(u.Object, path) {
			continue
		}

		at, _ := time.Parse(time.RFC3339, resource.String(m, "time")) // Zero where it is not recorded.
		if !found || at.After(last.Time) {
			last, found = Writer{Manager: resource.String(m, "manager"), Time: at}, true
		}
	}

	return last, found
}
