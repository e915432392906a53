package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Rows whose edits stay inside functions need no build each: every such function is in the copy once as it is and once
// for each row, and a file with the row's number says which one is called: also in processes that a test starts, whose
// environment is not the test's.

// switched is a file with the functions of some rows beside its own.
type switched struct {
	path, text string
	rows       map[int]*row // numbers to rows
	inserts    []insert
	tail       bytes.Buffer
}

type insert struct {
	at   int // offset in text
	text string
	cut  int // bytes that it replaces
}

// function is a declaration in a file, by what names it.
type function struct {
	decl *ast.FuncDecl
	text string
}

// addRow puts the row's functions beside those of the files; reason says why it needs a build of its own, "" if it does not.
func addRow(root string, files map[string]*switched, n int, r *row) (reason string) {
	after := map[string]string{}
	for _, e := range r.edits {
		text, ok := after[e.path]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, e.path))
			if err != nil {
				return err.Error()
			}
			text = string(raw)
		}
		text, err := e.apply(text)
		if err != nil {
			return err.Error()
		}
		after[e.path] = text
	}
	type change struct {
		f     *switched
		fset  *token.FileSet
		old   *ast.FuncDecl
		fresh function
	}
	var all []change
	for path, text := range after {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return "it edits what is no code of a function"
		}
		f := files[path]
		if f == nil {
			raw, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return err.Error()
			}
			f = &switched{path: path, text: string(raw), rows: map[int]*row{}}
			files[path] = f
		}
		fset := token.NewFileSet()
		before, rest, _, err := functions(fset, f.text)
		if err != nil {
			return err.Error()
		}
		now, restNow, unused, err := functions(token.NewFileSet(), text)
		switch {
		case err != nil:
			return "it is no Go any more: " + err.Error()
		case rest != restNow || len(before) != len(now):
			return "it edits more than the inside of functions"
		case unused != "":
			return "it leaves the import " + unused + " without use"
		}
		for name, x := range now {
			was, ok := before[name]
			if !ok {
				return "it renames a function"
			}
			if was.text != x.text {
				if why := switchable(x.decl); why != "" {
					return why
				}
				all = append(all, change{f, fset, was.decl, x})
			}
		}
	}
	for _, c := range all {
		c.f.rows[n] = r
		c.f.put(c.fset, c.old, c.fresh, n)
	}
	if len(all) == 0 {
		return "it changes no function"
	}
	return ""
}

// functions are those of a file, and what stands outside of them; unused is an import that nothing names.
func functions(fset *token.FileSet, text string) (list map[string]function, rest, unused string, err error) {
	file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", "", err
	}
	list = map[string]function{}
	var out strings.Builder
	for _, d := range file.Decls {
		from, to := fset.Position(d.Pos()).Offset, fset.Position(d.End()).Offset
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			out.WriteString(text[from:to] + "\n")
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			t := fn.Recv.List[0].Type
			name = text[fset.Position(t.Pos()).Offset:fset.Position(t.End()).Offset] + "." + name
		}
		list[name] = function{fn, text[from:to]}
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		versioned := strings.ContainsAny(name, ".-") || strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == ""
		if name != "_" && name != "." && !versioned && !used[name] {
			unused = path
		}
	}
	return list, out.String(), unused, nil
}

// switchable says why a function cannot stand there twice; "" if it can.
func switchable(d *ast.FuncDecl) string {
	switch {
	case d.Body == nil:
		return "it has no body"
	case d.Type.TypeParams != nil:
		return "it has parameters of type"
	case d.Recv == nil && d.Name.Name == "init":
		return "an init cannot be called"
	}
	for _, p := range d.Type.Params.List {
		if len(p.Names) == 0 {
			return "its parameters have no names"
		}
	}
	return ""
}

// put adds the function of a row and the branch that leads to it.
func (f *switched) put(fset *token.FileSet, old *ast.FuncDecl, fresh function, n int) {
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	name := func(at *ast.Ident, as string) string {
		if at.Name != "_" {
			return at.Name
		}
		i := insert{at: offset(at.Pos()), text: as, cut: 1}
		if !slices.Contains(f.inserts, i) {
			f.inserts = append(f.inserts, i)
		}
		return as
	}
	var args []string
	for _, p := range old.Type.Params.List {
		for _, x := range p.Names {
			arg := name(x, fmt.Sprint("rulesArg", offset(x.Pos())))
			if _, ok := p.Type.(*ast.Ellipsis); ok {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	to := fmt.Sprintf("%sRulesRow%d", old.Name.Name, n)
	call := to
	if old.Recv != nil {
		if names := old.Recv.List[0].Names; len(names) > 0 {
			call = name(names[0], "rulesRecv") + "." + to
		} else {
			i := insert{at: offset(old.Recv.List[0].Type.Pos()), text: "rulesRecv "}
			if !slices.Contains(f.inserts, i) {
				f.inserts = append(f.inserts, i)
			}
			call = "rulesRecv." + to
		}
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if old.Type.Results != nil && len(old.Type.Results.List) > 0 {
		call = "return " + call
	} else {
		call += "; return"
	}
	f.inserts = append(f.inserts, insert{at: offset(old.Body.Lbrace) + 1, text: fmt.Sprintf(" if rulesRow == %d { %s };", n, call)})
	at := int(fresh.decl.Name.Pos() - fresh.decl.Pos())
	fmt.Fprintf(&f.tail, "\n//rules:row %d\n%s%s%s\n", n, fresh.text[:at], to, fresh.text[at+len(old.Name.Name):])
}

// String is the file with all its functions.
func (f *switched) String() string {
	slices.SortStableFunc(f.inserts, func(a, b insert) int { return a.at - b.at })
	var out strings.Builder
	at := 0
	for _, i := range f.inserts {
		out.WriteString(f.text[at:i.at] + i.text)
		at = i.at + i.cut
	}
	out.WriteString(f.text[at:])
	out.Write(f.tail.Bytes())
	return out.String()
}

// chooser is the file that reads the row's number; each package that is edited has one.
func chooser(pkg, file string) string {
	return fmt.Sprintf(`package %s

import "os"

var rulesRow = func() (n int) {
	row, _ := os.ReadFile(%q)
	for _, c := range row {
		n = n*10 + int(c-'0')
	}
	return n
}()
`, pkg, file)
}
