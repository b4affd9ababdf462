package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// rows are the numbers of the house.
func (h *house) rows(ctx context.Context) ([]row, error) {
	var out []row

	add := func(name string, value int, of string) { out = append(out, row{Name: name, Value: value, Of: of}) }

	product := func(p string) bool { return !h.aside[p] }
	engine := func(p string) bool { return strings.HasPrefix(p, module+"/engine/") }

	for _, part := range []struct {
		name string
		of   func(string) bool
	}{
		{"shipping, without command line and workbench", product},
		{"of these engine", engine},
		{"command line and workbench", func(p string) bool { return h.aside[p] }},
	} {
		lines, statements := 0, 0

		for _, p := range h.order {
			if part.of(p) {
				size := h.size(h.packages[p])
				lines += size.lines
				statements += size.statements
			}
		}

		add("lines: "+part.name, lines, "")
		add("statements: "+part.name, statements, "")
	}

	tests, err := h.tests(ctx)
	if err != nil {
		return nil, err
	}

	add("lines of tests", tests, "")

	embedded, largest := h.embedded()
	add("bytes: templates and embedded data", embedded, largest)

	promoted, of := h.promoted()
	add("promoted methods of the largest type", promoted, of)

	embedding := h.embedding()
	add("structs that embed structs of ours", len(embedding), cut(embedding))

	annotations := h.annotations()
	add("annotations on users' objects", len(annotations), "")

	expressions := h.expressions()
	add("regular expressions over text", len(expressions), cut(expressions))

	long := h.long()
	add(fmt.Sprintf("functions of more than %d lines", longFunction), len(long), cut(long))

	list := h.byPackage()
	largestPackage := slices.MaxFunc(list, func(a, b packageSize) int { return a.files - b.files })
	add("files of the largest package", largestPackage.files, largestPackage.name)
	add("packages", len(list), "")

	return out, nil
}

// cut are the first of some names.
func cut(list []string) string {
	const most = 4
	if len(list) > most {
		return strings.Join(list[:most], " ") + " ..."
	}

	return strings.Join(list, " ")
}

// packageSize is how large a package is.
type packageSize struct {
	name                                string
	files, lines, statements, functions int
	longest                             int
	longestName                         string
}

// byPackage are those without command line and workbench.
func (h *house) byPackage() []packageSize {
	var out []packageSize

	for _, p := range h.order {
		if !h.aside[p] {
			out = append(out, h.size(h.packages[p]))
		}
	}

	return out
}

// size counts the lines of a package that have more than a comment, and its statements. Deepcopy functions and
// protobuf do not count.
func (h *house) size(p *packages.Package) packageSize {
	out := packageSize{name: short(p.PkgPath)}

	for i, file := range p.Syntax {
		name := p.CompiledGoFiles[i]
		if base := path.Base(name); strings.HasPrefix(base, "zz_generated.deepcopy") || strings.HasSuffix(base, ".pb.go") {
			continue
		}

		out.files++
		out.lines += codeLines(name)

		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt, *ast.EmptyStmt:
			case ast.Stmt:
				out.statements++
			case *ast.FuncDecl:
				out.functions++

				if n.Body != nil {
					if lines := length(p.Fset, n); lines > out.longest {
						out.longest, out.longestName = lines, n.Name.Name
					}
				}
			}

			return true
		})
	}

	return out
}

// codeLines counts the lines of a file with more than a comment on them.
func codeLines(name string) int {
	text, err := os.ReadFile(name) //nolint:gosec // The go command names it.
	if err != nil {
		return 0
	}

	lines := map[int]bool{}
	own := token.NewFileSet()
	f := own.AddFile(name, own.Base(), len(text))

	var s scanner.Scanner

	s.Init(f, text, nil, 0)

	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}

		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}

		first := own.Position(pos).Line
		for l := first; l <= first+strings.Count(literal, "\n"); l++ {
			lines[l] = true
		}
	}
}

func length(set *token.FileSet, n ast.Node) int {
	return set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
}

// longFunction is how many lines of a function are many.
const longFunction = 60

// long are the functions with more.
func (h *house) long() []string {
	var out []string

	for _, f := range h.functions {
		if !h.aside[f.pkg.PkgPath] && length(f.pkg.Fset, f.decl) > longFunction {
			out = append(out, f.name)
		}
	}

	slices.Sort(out)

	return out
}

// tests counts the lines of Go in tests, and in what is below test/.
func (h *house) tests(ctx context.Context) (int, error) {
	files, err := exec.CommandContext(ctx, "git", "-C", h.dir, //nolint:gosec // The user names it.
		"ls-files", "*_test.go", "test/*.go").Output()
	if err != nil {
		return 0, fmt.Errorf("cannot list files of %q: %w", h.dir, err)
	}

	out := 0

	for _, name := range slices.Compact(strings.Fields(string(files))) {
		out += codeLines(filepath.Join(h.dir, name))
	}

	return out, nil
}

// longText is how many bytes of a literal are data.
const longText = 400

// embedded are the bytes of embedded files and of long literals in the packages, and which has the most.
func (h *house) embedded() (int, string) {
	total, most, largest := 0, 0, ""

	for _, name := range h.order {
		p, here := h.packages[name], 0

		for _, file := range p.EmbedFiles {
			if info, err := os.Stat(file); err == nil {
				here += int(info.Size())
			}
		}

		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && len(l.Value) > longText {
					here += len(l.Value)
				}

				return true
			})
		}

		if total += here; here > most {
			most, largest = here, short(name)
		}
	}

	return total, largest
}

// structs calls a function with each struct that our packages declare, without command line and workbench. Those of
// the API are left out: a kind is its parts.
func (h *house) structs(yield func(*types.Named, *types.Struct)) {
	for _, path := range h.order {
		if h.aside[path] || strings.HasPrefix(path, module+"/apis/") {
			continue
		}

		scope := h.packages[path].Types.Scope()

		for _, name := range scope.Names() {
			tn, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || tn.IsAlias() {
				continue
			}

			named, ok := tn.Type().(*types.Named)
			if !ok {
				continue
			}

			if s, ok := named.Underlying().(*types.Struct); ok {
				yield(named, s)
			}
		}
	}
}

// embedding are the structs that embed a struct of ours. Those of the API are not counted: a kind is its parts.
func (h *house) embedding() []string {
	var out []string

	h.structs(func(named *types.Named, s *types.Struct) {
		for field := range s.Fields() {
			if field.Embedded() && structOfOurs(field.Type()) != nil {
				out = append(out, short(named.Obj().Pkg().Path())+"."+named.Obj().Name())

				return
			}
		}
	})

	return out
}

// promoted is how many methods the type with the most has by embedding structs of ours, and which type that is.
func (h *house) promoted() (int, string) {
	most, of := 0, ""

	h.structs(func(named *types.Named, _ *types.Struct) {
		count := 0

		set := types.NewMethodSet(types.NewPointer(named))
		for m := range set.Methods() {
			if f, ok := m.Obj().(*types.Func); ok && len(m.Index()) > 1 && ours(f.Pkg()) {
				count++
			}
		}

		if count > most {
			most, of = count, short(named.Obj().Pkg().Path())+"."+named.Obj().Name()
		}
	})

	return most, of
}

// structOfOurs is a struct that we declare, or a pointer to one; nil for anything else.
func structOfOurs(t types.Type) *types.Named {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}

	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}

	named, ok := t.(*types.Named)
	if !ok || !ours(named.Obj().Pkg()) {
		return nil
	}

	if _, ok := named.Underlying().(*types.Struct); !ok {
		return nil
	}

	return named
}

var annotation = regexp.MustCompile(`^Annotation[A-Z]`)

// annotations are the names of those on users' objects: of all those that the API declares and something that is
// not the command line writes or reads.
func (h *house) annotations() []string {
	var out []string

	for _, path := range h.order {
		if !strings.HasPrefix(path, module+"/apis/") {
			continue
		}

		scope := h.packages[path].Types.Scope()
		for _, name := range scope.Names() {
			if c, ok := scope.Lookup(name).(*types.Const); ok && annotation.MatchString(name) && name != "AnnotationPrefix" {
				out = append(out, c.Val().ExactString())
			}
		}
	}

	return out
}

// expressions are where engine, fn, webhook and gatecontroller compile regular expressions.
func (h *house) expressions() []string {
	var out []string

	for _, path := range h.order {
		if first, _, _ := strings.Cut(short(path), "/"); !slices.Contains([]string{"engine", "fn", "webhook", "gatecontroller"}, first) {
			continue
		}

		p := h.packages[path]

		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f := callee(p, call); f != nil && f.Pkg() != nil && f.Pkg().Path() == "regexp" && strings.Contains(f.Name(), "Compile") {
						at := p.Fset.Position(call.Pos())
						out = append(out, fmt.Sprintf("%s:%d", h.file(at.Filename), at.Line))
					}
				}

				return true
			})
		}
	}

	return out
}
