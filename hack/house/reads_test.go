package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// code has functions that get more and less than they read.
const code = `package x

type part struct{ a, b, c, d int }

type all struct {
	one, two, three, four part
	e                     int
}

func whole(in all) int { return in.one.a + in.two.b + first(in) + in.three.c + len(list(in.four)) + in.e }

func list(p part) []part { return []part{p} }

func first(in all) int { return in.one.a + in.one.b + in.one.c + in.one.d }

func narrow(p part) int { return p.a }

func (in *all) method() int {
	one := in.one

	return one.a + func() int { return in.two.a }()
}

func circle(in all, n int) int {
	if n == 0 {
		return in.e
	}

	return other(in, n-1) + in.two.d
}

func other(in all, n int) int { return circle(in, n) }

func keeps(in all) any { return in }
`

func houseOf(t *testing.T, source string) *house {
	t.Helper()

	set := token.NewFileSet()

	file, err := parser.ParseFile(set, "x.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Types: map[ast.Expr]types.TypeAndValue{},
	}
	config := &types.Config{Importer: importer.Default()}

	pkg, err := config.Check(module+"/x", set, []*ast.File{file}, info)
	if err != nil {
		t.Fatal(err)
	}

	h := &house{packages: map[string]*packages.Package{}, aside: map[string]bool{}, functions: map[string]*function{}}
	h.packages[pkg.Path()] = &packages.Package{
		PkgPath: pkg.Path(), Types: pkg, TypesInfo: info, Syntax: []*ast.File{file}, Fset: set, CompiledGoFiles: []string{"x.go"},
	}
	h.order = []string{pkg.Path()}
	h.findFunctions()

	return h
}

// TestAFunctionIsFatThatReadsFewerThanHalfOfWhatItGets counts what a function reads itself, by what it calls, by what it names
// anew, and in circles; what it keeps, it reads.
func TestAFunctionIsFatThatReadsFewerThanHalfOfWhatItGets(t *testing.T) {
	t.Parallel()

	want := map[string][]string{
		"x.first":         {"one.a", "one.b", "one.c", "one.d"},
		"(*x.all).method": {"one.a", "two.a"},
		"x.circle":        {"two.d", "e"},
		"x.other":         {"two.d", "e"},
	}

	for _, f := range houseOf(t, code).fat() {
		if !slices.Equal(f.reads, want[f.function]) || f.fields != 17 {
			t.Errorf("%s reads %v of %d, want %v of 17", f.function, f.reads, f.fields, want[f.function])
		}

		delete(want, f.function)
	}

	if len(want) > 0 {
		t.Errorf("%v are not fat", want)
	}
}

// TestEmbeddingIsCounted counts structs of ours that embed one, and what that promotes.
func TestEmbeddingIsCounted(t *testing.T) {
	t.Parallel()

	h := houseOf(t, `package x

type base struct{}

func (base) one() {}

func (base) two() {}

type tower struct{ *base }

type top struct{ tower }
`)

	if got := h.embedding(); !slices.Equal(got, []string{"x.top", "x.tower"}) {
		t.Errorf("embedding is %v", got)
	}

	if n, of := h.promoted(); n != 2 || of != "x.top" && of != "x.tower" {
		t.Errorf("%d methods are promoted to %s", n, of)
	}
}
