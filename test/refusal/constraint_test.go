// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

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

			for what, b := range ofValue(name, last(path), at.ValueValidation) {
				out[what] = b
			}
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

// texts are the places of all kinds where text is, as place names them, in order.
func (s server) texts() []string {
	var out []string

	for name, k := range s {
		for path, at := range nodes(k.schema.Properties["spec"], "spec") {
			if at.Type == "string" {
				out = append(out, place(name, path))
			}
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// texts are the texts below a value of an object, by their paths, each with what sets it in such
// an object.
func texts(v any, at string) iter.Seq2[string, func(object map[string]any, text string)] {
	return func(yield func(string, func(map[string]any, string)) bool) {
		_ = eachText(v, at, nil, func(path string, steps []any) bool {
			return yield(path, func(object map[string]any, text string) { set(object, steps, text) })
		})
	}
}

func eachText(v any, at string, steps []any, yield func(string, []any) bool) bool {
	switch v := v.(type) {
	case string:
		return !strings.HasPrefix(at, "spec") || yield(at, slices.Clone(steps))
	case map[string]any:
		for key, below := range v {
			if !eachText(below, strings.TrimPrefix(at+"."+key, "."), append(steps, key), yield) {
				return false
			}
		}
	case []any:
		for i, below := range v {
			if !eachText(below, fmt.Sprintf("%s[%d]", at, i), append(steps, i), yield) {
				return false
			}
		}
	}

	return true
}

// set sets what some steps of an object lead to.
func set(v any, steps []any, text string) {
	switch in := v.(type) {
	case map[string]any:
		key, _ := steps[0].(string)
		if len(steps) == 1 {
			in[key] = text
		} else {
			set(in[key], steps[1:], text)
		}
	case []any:
		i, _ := steps[0].(int)
		if len(steps) == 1 {
			in[i] = text
		} else {
			set(in[i], steps[1:], text)
		}
	}
}

// compilers are the sources of what compiles our kinds.
var compilers = []string{ //nolint:gochecknoglobals // A list.
	"engine/policy/*.go", "engine/enforcement/*.go", "engine/upgradeallowance/*.go", "engine/change/pattern.go", "webhook/validate.go",
}

// sentences are the texts with which these sources report a field, and those of their errors.
func sentences(t *testing.T) []string {
	t.Helper()

	var out []string

	for _, pattern := range compilers {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: there are no files: %v", pattern, err)
		}

		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}

			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			tree, err := parser.ParseFile(token.NewFileSet(), file, raw, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}

			ast.Inspect(tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && reports(call) {
					out = append(out, literal(call.Args[len(call.Args)-1])...)
				}

				return true
			})
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// reports reports whether a call makes an error: errors.New, or one of the package field.
func reports(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}

	from, ok := f.X.(*ast.Ident)

	return ok && (from.Name == "errors" && f.Sel.Name == "New" ||
		from.Name == "field" && slices.Contains([]string{"Invalid", "Required", "Forbidden", "TooLong", "TooMany", "TypeInvalid"}, f.Sel.Name))
}

// literal are the texts that are written in an expression.
func literal(e ast.Expr) []string {
	var out []string

	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, text)
			}
		}

		return true
	})

	return out
}
