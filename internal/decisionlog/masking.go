// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// A masking masks the objects of one record. Of each field that is hidden the values are
// numbered: the same value has the same number, so that the record shows what changes, and
// no more. Numbers mean nothing beyond the record.
type masking struct {
	// numbers are those of the values of a field, by the fields that lead to it.
	numbers map[string]map[string]int
}

// hide is what stands for a value: (masked), and for others of the same field (masked 2)
// and so on.
func (m *masking) hide(at []string, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return mask.Text // Of no JSON, and of no object.
	}

	field := strings.Join(at, "\x00")

	if m.numbers == nil {
		m.numbers = map[string]map[string]int{}
	}

	if m.numbers[field] == nil {
		m.numbers[field] = map[string]int{}
	}

	number, ok := m.numbers[field][string(raw)]
	if !ok {
		number = len(m.numbers[field]) + 1
		m.numbers[field][string(raw)] = number
	}

	if number == 1 {
		return mask.Text
	}

	return fmt.Sprintf("%s %d)", strings.TrimSuffix(mask.Text, ")"), number)
}

// object masks an object. Peers are other versions of it.
func (m *masking) object(object map[string]any, peers ...map[string]any) Object {
	return mask.Object(object, m.hide, peers...)
}

// masked reports whether anything was that decisions may go by. What kubectl stores of what was
// applied is hidden of most objects, and says nothing that is not in their fields.
func (m *masking) masked() bool {
	for field := range m.numbers {
		if field != applied {
			return true
		}
	}

	return false
}

// applied is the field in which kubectl stores that.
const applied = "metadata\x00annotations\x00" + mask.LastApplied

// renumber takes the hashes of values out of the records of wishes on objects, which are
// copies.
func renumber(objects ...Object) {
	texts := make([]string, len(objects))

	for i, o := range objects {
		texts[i], _ = annotations(o)[v1alpha1.AnnotationWish].(string)
	}

	for i, text := range wish.Renumber(texts...) {
		if text != "" {
			annotations(objects[i])[v1alpha1.AnnotationWish] = text
		}
	}
}

func annotations(o Object) map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	out, _ := meta["annotations"].(map[string]any)

	return out
}

// withoutManagedFields is an object without them; it shares all else.
func withoutManagedFields(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	if _, ok := meta["managedFields"]; !ok {
		return object
	}

	meta = maps.Clone(meta)
	delete(meta, "managedFields")

	object = maps.Clone(object)
	object["metadata"] = meta

	return object
}
