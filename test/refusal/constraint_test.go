// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// breaks reports whether something that is wrong with an object of a kind breaks a constraint.
type breaks func(kind string, c metav1.StatusCause) bool

// constraints are those of the specs of all kinds, by what they say. What several fields of a
// name have in common, wherever they are, is one: they are of one type. That something is not
// there, or empty, the API server says of every field in the same words: it is one of each kind.
func (s server) constraints() map[string]breaks {
	out := map[string]breaks{}

	for name, k := range s {
		for path, at := range nodes(k.schema.Properties["spec"], "spec") {
			for _, r := range at.XValidations {
				if !strings.Contains(r.Rule, "oldSelf") {
					out[r.Message] = says(r.Message)
				}
			}

			if at.XListType != nil && *at.XListType != "atomic" {
				list := last(path)
				out["an element of "+list+" that is there twice"] = func(_ string, c metav1.StatusCause) bool {
					return c.Type == metav1.CauseTypeFieldValueDuplicate && last(c.Field) == list
				}
			}

			maps.Copy(out, ofValue(name, last(path), at.ValueValidation))
		}
	}

	return out
}

// ofValue are the constraints on a value of a field of a kind.
func ofValue(kind, name string, v *structural.ValueValidation) map[string]breaks {
	out := map[string]breaks{}
	if v == nil {
		return out
	}

	ofKind := func(b breaks) breaks {
		return func(k string, c metav1.StatusCause) bool { return k == kind && b(k, c) }
	}
	ofName := func(b breaks) breaks {
		return func(k string, c metav1.StatusCause) bool { return last(c.Field) == name && b(k, c) }
	}

	if len(v.Enum) > 0 {
		values := make([]string, len(v.Enum))
		for i, e := range v.Enum {
			values[i] = strconv.Quote(fmt.Sprint(e.Object))
		}

		list := "supported values: " + strings.Join(values, ", ")
		out[name+" of the "+list] = ofName(says(list))
	}

	if v.Pattern != "" {
		out[name+" that matches "+v.Pattern] = ofName(says("should match '" + v.Pattern + "'"))
	}

	if v.Format == "date-time" {
		out["a time"] = says("must be of type date-time")
	}

	if v.Minimum != nil {
		out["the least "+name] = ofName(says("should be greater than or equal to"))
	}

	for what, there := range map[string]bool{
		"should be at least 1 chars long":          v.MinLength != nil,
		"should have at least 1 items":             v.MinItems != nil,
		"should have at least 1 properties":        v.MinProperties != nil,
		string(metav1.CauseTypeFieldValueRequired): len(v.Required) > 0,
	} {
		if there {
			out[kind+": "+what] = ofKind(func(_ string, c metav1.StatusCause) bool {
				return string(c.Type) == what || strings.Contains(c.Message, what)
			})
		}
	}

	return out
}

func says(text string) breaks {
	return func(_ string, c metav1.StatusCause) bool { return strings.Contains(c.Message, text) }
}

// last is the name of the field that a path leads to.
func last(path string) string {
	path, _, _ = strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")

	return path
}

// nodes are those of a schema, by their paths.
func nodes(s structural.Structural, at string) iter.Seq2[string, structural.Structural] {
	return func(yield func(string, structural.Structural) bool) { walk(s, at, yield) }
}

func walk(s structural.Structural, at string, yield func(string, structural.Structural) bool) bool {
	if !yield(at, s) {
		return false
	}

	for name, below := range s.Properties {
		if !walk(below, at+"."+name, yield) {
			return false
		}
	}

	return s.Items == nil || walk(*s.Items, at+"[]", yield)
}
