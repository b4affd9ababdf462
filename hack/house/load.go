package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// module is the path of ours.
const module = "github.com/kausality-io/kausality-crossplane"

// A house is what is measured: the packages that the programs are made of.
type house struct {
	dir string
	// packages by path, and which of them only the command line uses.
	packages map[string]*packages.Package
	order    []string
	aside    map[string]bool
	// functions by their full names, and what is known of what each reads.
	functions map[string]*function
}

// A function is one with a body.
type function struct {
	name string
	pkg  *packages.Package
	decl *ast.FuncDecl
	obj  *types.Func
	// reads by the index of the parameter, the receiver first; see [house.findReads].
	reads []map[string]bool
}

var (
	errLoad     = errors.New("it does not compile")
	errPrograms = errors.New("not all programs are there")
)

// load reads the packages of the programs in a checkout.
func load(dir string) (*house, error) {
	config := &packages.Config{Dir: dir, Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo |
		packages.NeedEmbedFiles | packages.NeedExportFile}

	config.Mode &^= packages.NeedDeps // Of what others made the types are enough.

	list, err := packages.Load(config, "./...")
	if err != nil {
		return nil, fmt.Errorf("cannot load %q: %w", dir, err)
	}

	out := &house{dir: dir, packages: map[string]*packages.Package{}, aside: map[string]bool{}, functions: map[string]*function{}}
	loaded := map[string]*packages.Package{}

	for _, p := range list {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("cannot load %q: %w: %w", p.PkgPath, errLoad, p.Errors[0])
		}

		loaded[p.PkgPath] = p
	}

	product, whole := map[string]bool{}, map[string]bool{}

	for _, program := range []string{"function-kausality", "kausality-manager"} {
		reach(loaded, module+"/cmd/"+program, product)
	}

	reach(loaded, module+"/cmd/kubectl-kausality", whole)

	if !product[module+"/engine/decision"] || len(whole) == 0 {
		return nil, fmt.Errorf("cannot measure %q: %w", dir, errPrograms)
	}

	for path := range loaded {
		if product[path] || whole[path] {
			out.packages[path], out.aside[path] = loaded[path], !product[path]
			out.order = append(out.order, path)
		}
	}

	slices.Sort(out.order)
	out.findFunctions()

	return out, nil
}

// reach collects our packages that a program is made of.
func reach(loaded map[string]*packages.Package, path string, into map[string]bool) {
	p, ok := loaded[path]
	if !ok || into[path] {
		return
	}

	into[path] = true

	for imported := range p.Imports {
		reach(loaded, imported, into)
	}
}

func (h *house) findFunctions() {
	for _, path := range h.order {
		p := h.packages[path]

		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				decl, ok := d.(*ast.FuncDecl)
				if !ok || decl.Body == nil {
					continue
				}

				if obj, ok := p.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					h.functions[obj.FullName()] = &function{name: short(obj.FullName()), pkg: p, decl: decl, obj: obj}
				}
			}
		}
	}
}

// short is a name without the path of our module.
func short(name string) string { return strings.ReplaceAll(name, module+"/", "") }

// ours reports whether a package is one of ours.
func ours(p *types.Package) bool {
	return p != nil && (p.Path() == module || strings.HasPrefix(p.Path(), module+"/"))
}

// file is a path below the root.
func (h *house) file(name string) string {
	root, err := filepath.Abs(h.dir)
	if err != nil {
		return name
	}

	out, err := filepath.Rel(root, name)
	if err != nil {
		return name
	}

	return out
}
