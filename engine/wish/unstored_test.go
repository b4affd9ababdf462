// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// TestWhatIsNeverStoredCanBeTakenAwayNowhere reads all built-in kinds: a field
// that is a pointer in one of them can be there with a zero value, and not be there.
func TestWhatIsNeverStoredCanBeTakenAwayNowhere(t *testing.T) {
	never := map[string]bool{}
	seen := map[reflect.Type]bool{}

	for _, typ := range scheme.Scheme.AllKnownTypes() {
		eachField(typ, seen, func(owner reflect.Type, name string, f reflect.StructField) {
			if !slices.Contains(wish.Unstorable(), name) {
				return
			}

			if f.Type.Kind() == reflect.Pointer {
				t.Errorf("%s.%s is a pointer", owner, f.Name)
			}

			if strings.Contains(f.Tag.Get("json"), ",omitempty") {
				never[name] = true
			}
		})
	}

	for _, name := range wish.Unstorable() {
		if !never[name] {
			t.Errorf("no field %s has omitempty", name)
		}
	}
}

// TestWhatIsMeantWhereItIsEmptyCanBeLeftOut reads all built-in kinds, too.
func TestWhatIsMeantWhereItIsEmptyCanBeLeftOut(t *testing.T) {
	found := map[string]bool{}
	seen := map[reflect.Type]bool{}

	for _, typ := range scheme.Scheme.AllKnownTypes() {
		eachField(typ, seen, func(owner reflect.Type, name string, f reflect.StructField) {
			if !slices.Contains(wish.Meant(), name) {
				return
			}

			if f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.Struct {
				t.Errorf("%s.%s is no pointer", owner, f.Name)
			}

			found[name] = true
		})
	}

	for _, name := range wish.Meant() {
		if !found[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}

// eachField calls a function with each field of a type that people write, and of
// the types that it has.
func eachField(typ reflect.Type, seen map[reflect.Type]bool, call func(owner reflect.Type, name string, f reflect.StructField)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}

	if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
		return
	}

	seen[typ] = true

	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "status" {
			continue
		}

		call(typ, name, f)
		eachField(f.Type, seen, call)
	}
}
