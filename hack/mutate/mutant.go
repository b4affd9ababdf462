package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is a source with the text at one place replaced.
type mutant struct {
	at                      token.Position
	operator, old, new, src string
}

func (m mutant) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s → %s", m.at, m.operator, m.old, m.new)), " ")
}

func (m mutant) apply() string { return m.src[:m.at.Offset] + m.new + m.src[m.at.Offset+len(m.old):] }

// mutants returns those of a file. A generated file has none.
func mutants(file, src string) ([]mutant, error) {
	w := walk{files: token.NewFileSet(), src: src, list: &[]mutant{}}
	f, err := parser.ParseFile(w.files, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err == nil && !ast.IsGenerated(f) {
		ast.Walk(w, f)
	}
	return slices.CompactFunc(*w.list, func(a, b mutant) bool { return a.at == b.at && a.old == b.old && a.new == b.new }), err
}

type walk struct {
	files   *token.FileSet
	src     string
	list    *[]mutant
	results *ast.FieldList // Of the function around the node.
}

// Visit adds the mutants of a node.
func (w walk) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.Field: // Paths and tags are no values.
		return nil
	case *ast.FuncDecl:
		w.results = n.Type.Results
	case *ast.FuncLit:
		w.results = n.Type.Results
	case *ast.IfStmt:
		w.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			w.negate(n.Cond)
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			w.negate(n.X, n.Y)
		}
	case *ast.ExprStmt, *ast.IncDecStmt:
		w.add("drop", n, n, "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			w.add("drop", n, n, "")
		}
	case *ast.ReturnStmt:
		if len(n.Results) > 0 {
			w.zero(n.Results)
		}
	case *ast.BasicLit, *ast.Ident:
		w.swap(n, w.text(n, n))
	}
	return w
}

func (w walk) add(operator string, first, last ast.Node, text string) {
	if old := w.text(first, last); old != text {
		*w.list = append(*w.list, mutant{w.files.Position(first.Pos()), operator, old, text, w.src})
	}
}

func (w walk) text(first, last ast.Node) string {
	return w.src[w.files.Position(first.Pos()).Offset:w.files.Position(last.End()).Offset]
}

func (w walk) negate(conds ...ast.Expr) {
	for _, c := range conds {
		w.add("negate", c, c, "!("+w.text(c, c)+")")
	}
}

// swap swaps true and false, makes numbers one less and one more, and strings empty.
func (w walk) swap(n ast.Node, text string) {
	if i, err := strconv.Atoi(text); err == nil {
		w.add("swap", n, n, strconv.Itoa(max(i-1, 0)))
		w.add("swap", n, n, strconv.Itoa(i+1))
	} else if text == "true" || text == "false" {
		w.add("swap", n, n, strconv.FormatBool(text != "true"))
	} else if text[0] == '"' || text[0] == '`' {
		w.add("swap", n, n, `""`)
	}
}

// zero returns zero values: as they are written already, or *new(T) of a type T.
func (w walk) zero(old []ast.Expr) {
	zeros := make([]string, 0, len(old))
	for _, f := range w.results.List {
		zeros = append(zeros, slices.Repeat([]string{w.text(f.Type, f.Type)}, max(1, len(f.Names)))...)
	}
	for i, typ := range zeros {
		zeros[i] = cmp.Or(map[string]string{"error": "nil", "string": `""`, "bool": "false", "int": "0"}[typ], "*new("+typ+")")
		if i < len(old) && slices.Contains([]string{"nil", "0", `""`, "false", typ + "{}"}, w.text(old[i], old[i])) {
			zeros[i] = w.text(old[i], old[i])
		}
	}
	w.add("zero", old[0], old[len(old)-1], strings.Join(zeros, ", "))
}
