// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const annotationSource = "apis/v1alpha1/annotations.go"

// errUndescribed is the cause when the code has something that this program does
// not know, or the other way round.
var errUndescribed = errors.New("hack/reference does not describe what the code has")

// who writes an annotation, label or finalizer, by the constant's name.
type who struct{ where, writer string }

func writers() map[string]who {
	const annotation, label = "annotation", "label"

	const manager, webhook = "the manager", "the function and the manager's webhook stamp it, and the manager prunes it"

	return map[string]who{
		"AnnotationAllowances":      {annotation, webhook},
		"AnnotationTrace":           {annotation, webhook},
		"AnnotationRecord":          {annotation, "the function and the manager's webhook"},
		"AnnotationInitialized":     {annotation, "the manager, and its webhook before an XR composes something"},
		"AnnotationGate":            {annotation, manager},
		"AnnotationDesiredPolicies": {annotation, "the function, and the manager's webhook on resources made without it"},
		"AnnotationLastUpgrade":     {annotation, "the function and the manager's webhook"},
		"AnnotationHeld":            {annotation, "the manager's webhook"},
		"AnnotationApproved":        {annotation, manager},
		"AnnotationWish":            {annotation, "the function, through Crossplane"},
		"AnnotationRelease":         {annotation, "people, by kubectl kausality release, or uninstall"},
		"AnnotationManager":         {annotation, manager},
		"Finalizer":                 {"finalizer", manager},
		"LabelKind":                 {label, manager},
		"LabelKindPrefix":           {label, manager},
		"LabelServiceAccount":       {label, manager},
		"LabelOwn":                  {label, manager},
		"LabelAggregate":            {label, "people"},
	}
}

// writeAnnotations writes what Kausality keeps on objects, with its shapes.
func writeAnnotations(out *bytes.Buffer) error {
	file, err := parser.ParseFile(token.NewFileSet(), annotationSource, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("cannot read the sources: %w", err)
	}

	fmt.Fprint(out, "\n# Annotations, labels, finalizer\n\nValues of annotations are YAML on write; YAML and JSON are accepted on read.\n"+
		"What people write instead of Kausality is not stored, but for what says so.\n\n"+
		"| Key | On | Meaning | Written by |\n| --- | --- | --- | --- |\n")

	known := writers()

	for _, spec := range constants(file) {
		name := spec.Names[0].Name

		w, ok := known[name]
		if !ok {
			if strings.HasPrefix(name, "Label") || strings.HasPrefix(name, "Annotation") && name != "AnnotationPrefix" {
				return fmt.Errorf("%s: %w", name, errUndescribed)
			}

			continue
		}

		delete(known, name)
		text := "It " + strings.TrimPrefix(prose(spec.Doc.Text()), name+" ")
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", key(spec), w.where, cell(text), cell(w.writer))
	}

	if len(known) > 0 {
		return fmt.Errorf("%v: %w", known, errUndescribed)
	}

	writeShapes(out, file, nil)

	return writeAudit(out)
}

const auditSource = "webhook/audit.go"

// writeAudit writes what the API server's audit log gets of a decision.
func writeAudit(out *bytes.Buffer) error {
	file, err := parser.ParseFile(token.NewFileSet(), auditSource, nil, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("cannot read the sources: %w", err)
	}

	fmt.Fprint(out, "\n## Audit annotations\n\nWhat the API server's audit log has of each decision of the webhook, under the name of "+
		"the webhook: `NAME.kausality.io/KEY`. Each is at most 1,024 characters long; of a list that is longer it has the first, "+
		"and how many more there are.\n\n"+
		"| Key | Meaning |\n| --- | --- |\n")

	found := false

	for _, spec := range constants(file) {
		name := spec.Names[0].Name

		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || !strings.HasPrefix(name, "audit") {
			continue
		}

		text, _ := strconv.Unquote(value.Value)
		_, meaning, _ := strings.Cut(prose(spec.Doc.Text()), " ")
		found = true

		fmt.Fprintf(out, "| `%s` | %s |\n", text, cell(title(strings.TrimPrefix(strings.TrimPrefix(meaning, "is "), "are "))))
	}

	if !found {
		return fmt.Errorf("audit annotations: %w", errUndescribed)
	}

	return nil
}

// constants are those of a file that have a comment.
func constants(file *ast.File) []*ast.ValueSpec {
	var out []*ast.ValueSpec

	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}

		for _, s := range decl.Specs {
			if spec, ok := s.(*ast.ValueSpec); ok {
				if spec.Doc == nil {
					spec.Doc = decl.Doc
				}

				out = append(out, spec)
			}
		}
	}

	return out
}

// key is the value of a constant that starts with our prefix.
func key(spec *ast.ValueSpec) string {
	sum, ok := spec.Values[0].(*ast.BinaryExpr)
	if !ok {
		return ""
	}

	if first, ok := sum.X.(*ast.BasicLit); ok {
		text, _ := strconv.Unquote(first.Value)

		return text + v1alpha1.AnnotationPrefix + "*"
	}

	rest, ok := sum.Y.(*ast.BasicLit)
	if !ok {
		return ""
	}

	text, _ := strconv.Unquote(rest.Value)

	return v1alpha1.AnnotationPrefix + text
}

// prose takes the brackets of links out of a comment.
func prose(text string) string { return strings.NewReplacer("[", "", "]", "").Replace(text) }

// writeShapes writes the structs that values are made of: those of some names, or
// all of a file. A name may say of what it is, as in "Finding of doctor", where others have it, too.
func writeShapes(out *bytes.Buffer, file *ast.File, names []string) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}

		for _, s := range decl.Specs {
			spec, _ := s.(*ast.TypeSpec)

			shape, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}

			title, ok := titleOf(spec.Name.Name, names)
			if !ok {
				continue
			}

			text, _, _ := strings.Cut(decl.Doc.Text(), "\n+")
			fmt.Fprintf(out, "\n## %s\n\n%s\n\n| Field | Type | Meaning |\n| --- | --- | --- |\n", title, paragraph(prose(text)))

			for _, f := range shape.Fields.List {
				if f.Tag != nil { // What has none is not exported.
					writeField(out, f)
				}
			}
		}
	}
}

// titleOf is what a struct is called among those that are to be written, if it is.
func titleOf(name string, names []string) (string, bool) {
	if len(names) == 0 {
		return name, true
	}

	i := slices.IndexFunc(names, func(n string) bool { return n == name || strings.HasPrefix(n, name+" of ") })
	if i < 0 {
		return "", false
	}

	return names[i], true
}

// writeField writes a row about a field, if it is in the value.
func writeField(out *bytes.Buffer, f *ast.Field) {
	name, options, _ := strings.Cut(tagOf(f).Get("json"), ",")

	switch {
	case name == "-":
	case options == "inline" && typeText(f.Type) != "header":
		fmt.Fprintf(out, "| | `%s` | All fields of it. |\n", typeText(f.Type))
	case options == "inline":
		fmt.Fprintf(out, "| `apiVersion`, `kind` | `string` | As of every document: see %s. |\n", typeText(f.Type))
	default:
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", name, typeText(f.Type), cell(prose(f.Doc.Text())))
	}
}

func tagOf(f *ast.Field) reflect.StructTag {
	text, _ := strconv.Unquote(f.Tag.Value)

	return reflect.StructTag(text)
}

// typeText writes a type as it is in the sources.
func typeText(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.ArrayType:
		return "[]" + typeText(t.Elt)
	case *ast.MapType:
		return "map[" + typeText(t.Key) + "]" + typeText(t.Value)
	case *ast.StarExpr:
		return typeText(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	default:
		return "object"
	}
}
