package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// manyFields is how many fields of a value are many.
const manyFields = 12

// fat is a function that gets a value with many fields and reads fewer than half of them.
type fat struct {
	function, param string
	fields          int
	reads           []string
}

// fat are all such functions, that which reads the smallest part first.
func (h *house) fat() []fat {
	h.findReads()

	var out []fat

	for _, name := range slices.Sorted(maps.Keys(h.functions)) {
		f := h.functions[name]
		if h.aside[f.pkg.PkgPath] {
			continue
		}

		for i, p := range params(f) {
			fields := h.fields(p.Type(), f.pkg.Types)
			if len(fields) <= manyFields {
				continue
			}

			reads := covered(fields, f.reads[i])
			if 2*len(reads) < len(fields) {
				out = append(out, fat{f.name, p.Name() + " " + short(types.TypeString(p.Type(), nil)), len(fields), reads})
			}
		}
	}

	slices.SortStableFunc(out, func(a, b fat) int { return cmp.Compare(len(a.reads)*b.fields, len(b.reads)*a.fields) })

	return out
}

// params are the receiver of a function, if any, and its parameters.
func params(f *function) []*types.Var {
	sig, _ := f.obj.Type().(*types.Signature)

	var out []*types.Var
	if sig.Recv() != nil {
		out = append(out, sig.Recv())
	}

	return slices.AppendSeq(out, sig.Params().Variables())
}

// fields are the paths of what a value of a type consists of, as a package sees it: those of structs of ours in it
// instead of the structs. Records of the API are one each.
func (h *house) fields(t types.Type, from *types.Package) []string {
	var out []string

	var walk func(t types.Type, prefix string, within []*types.Named)

	walk = func(t types.Type, prefix string, within []*types.Named) {
		named := structOfOurs(t)
		if named == nil || slices.Contains(within, named) || prefix != "" && strings.HasPrefix(named.Obj().Pkg().Path(), module+"/apis/") {
			out = append(out, strings.TrimSuffix(prefix, "."))

			return
		}

		s, _ := named.Underlying().(*types.Struct)
		opened := false

		for field := range s.Fields() {
			if field.Exported() || samePackage(field.Pkg(), from) {
				walk(field.Type(), prefix+field.Name()+".", append(slices.Clone(within), named))
				opened = true
			}
		}

		if !opened && prefix != "" {
			out = append(out, strings.TrimSuffix(prefix, "."))
		}
	}

	if structOfOurs(t) != nil {
		walk(t, "", nil)
	}

	return out
}

func samePackage(a, b *types.Package) bool { return a != nil && b != nil && a.Path() == b.Path() }

// covered are the fields that reads are of. A read of a struct is one of all of it.
func covered(fields []string, reads map[string]bool) []string {
	var out []string

	for _, f := range fields {
		for r := range reads {
			if r == "" || r == f || strings.HasPrefix(f, r+".") || strings.HasPrefix(r, f+".") {
				out = append(out, f)

				break
			}
		}
	}

	return out
}

// findReads finds out what each function reads of each parameter, itself or by what it calls with it, until nothing
// more is found: functions call each other in circles. The empty path is all: of what it stores, returns or gives away.
func (h *house) findReads() {
	names := slices.Sorted(maps.Keys(h.functions))

	for _, name := range names {
		f := h.functions[name]

		f.reads = make([]map[string]bool, len(params(f)))
		for i := range f.reads {
			f.reads[i] = map[string]bool{}
		}
	}

	for grew := true; grew; {
		grew = false

		for _, name := range names {
			f := h.functions[name]
			r := &reader{house: h, function: f, roots: map[types.Object]rooted{}}

			for i, p := range params(f) {
				if structOfOurs(p.Type()) != nil {
					r.roots[p] = rooted{index: i}
				}
			}

			r.read(f.decl.Body)
			grew = grew || r.grew
		}
	}
}

// rooted is a variable that stands for a parameter, or for what is at a path in it.
type rooted struct {
	index int
	path  string
}

// A reader collects what one function reads.
type reader struct {
	house    *house
	function *function
	roots    map[types.Object]rooted
	grew     bool
}

func (r *reader) note(at rooted) {
	if reads := r.function.reads[at.index]; !reads[at.path] {
		reads[at.path], r.grew = true, true
	}
}

// of is what an expression stands for, where it is a parameter or a field of one.
func (r *reader) of(e ast.Expr) (rooted, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		at, ok := r.roots[r.function.pkg.TypesInfo.ObjectOf(e)]

		return at, ok
	case *ast.ParenExpr:
		return r.of(e.X)
	case *ast.StarExpr:
		return r.of(e.X)
	case *ast.UnaryExpr:
		if e.Op.String() == "&" {
			return r.of(e.X)
		}
	case *ast.SelectorExpr:
		at, ok := r.of(e.X)
		selection := r.function.pkg.TypesInfo.Selections[e]

		if !ok || selection == nil || selection.Kind() != types.FieldVal {
			return rooted{}, false
		}

		return rooted{at.index, join(at.path, selected(selection))}, true
	}

	return rooted{}, false
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}

	return a + "." + b
}

// selected is the path of the fields that a selection goes through, those of embedded structs too.
func selected(s *types.Selection) string {
	return strings.Join(pathOf(s.Recv(), s.Index()), ".")
}

func pathOf(t types.Type, index []int) []string {
	var out []string

	for _, i := range index {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}

		s, ok := t.Underlying().(*types.Struct)
		if !ok || i >= s.NumFields() {
			return out
		}

		out = append(out, s.Field(i).Name())
		t = s.Field(i).Type()
	}

	return out
}

func (r *reader) read(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			r.call(n)

			return false
		case *ast.AssignStmt:
			return !r.alias(n)
		case ast.Expr:
			if at, ok := r.of(n); ok {
				r.note(at)

				return false
			}
		}

		return true
	})
}

// alias notes a variable that is declared to be a parameter or a part of one; false where an assignment is none.
func (r *reader) alias(n *ast.AssignStmt) bool {
	if len(n.Lhs) != 1 || len(n.Rhs) != 1 || n.Tok.String() != ":=" {
		return false
	}

	at, ok := r.of(n.Rhs[0])
	name, isName := n.Lhs[0].(*ast.Ident)

	if !ok || !isName || structOfOurs(r.function.pkg.TypesInfo.TypeOf(n.Rhs[0])) == nil {
		return false
	}

	r.roots[r.function.pkg.TypesInfo.ObjectOf(name)] = at

	return true
}

// call reads what a call gives of a parameter, or a part of one, to what it calls.
func (r *reader) call(n *ast.CallExpr) {
	called := r.house.functions[nameOf(callee(r.function.pkg, n))]

	var reads []map[string]bool
	if called != nil {
		reads = called.reads
	}

	if s, ok := n.Fun.(*ast.SelectorExpr); ok {
		r.receiver(s, called, reads)
	} else {
		r.read(n.Fun)
	}

	if called != nil && hasReceiver(called) && len(reads) > 0 {
		reads = reads[1:]
	}

	for i, arg := range n.Args {
		at, ok := r.of(arg)

		switch {
		case !ok:
			r.read(arg)
		case called == nil || structOfOurs(r.function.pkg.TypesInfo.TypeOf(arg)) == nil:
			r.note(at)
		default:
			for path := range reads[min(i, len(reads)-1)] {
				r.note(rooted{at.index, join(at.path, path)})
			}
		}
	}
}

// receiver reads what a method reads of a parameter, or of what is embedded in it.
func (r *reader) receiver(s *ast.SelectorExpr, called *function, reads []map[string]bool) {
	selection := r.function.pkg.TypesInfo.Selections[s]
	at, ok := r.of(s.X)

	switch {
	case !ok || selection == nil:
		r.read(s.X)
	case selection.Kind() == types.FieldVal: // A function that is the value of a field.
		r.note(rooted{at.index, join(at.path, selected(selection))})
	case called == nil, structOfOurs(params(called)[0].Type()) == nil:
		r.note(rooted{at.index, join(at.path, embeddedIn(selection))})
	default:
		for path := range reads[0] {
			r.note(rooted{at.index, join(join(at.path, embeddedIn(selection)), path)})
		}
	}
}

// embeddedIn is the path to what a method is promoted from.
func embeddedIn(s *types.Selection) string {
	return strings.Join(pathOf(s.Recv(), s.Index()[:len(s.Index())-1]), ".")
}

func hasReceiver(f *function) bool {
	sig, _ := f.obj.Type().(*types.Signature)

	return sig.Recv() != nil
}

// callee is the function that a call is of; nil where that is not known.
func callee(p *packages.Package, n *ast.CallExpr) *types.Func {
	var name *ast.Ident

	switch fun := n.Fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	default:
		return nil
	}

	f, _ := p.TypesInfo.Uses[name].(*types.Func)

	return f
}

func nameOf(f *types.Func) string {
	if f == nil {
		return ""
	}

	return f.FullName()
}
