package sealpush_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Somebody who shares a value between goroutines finds out from its type's documentation, or its package's, whether that
// is safe.
func TestConventionsConcurrency(t *testing.T) {
	says := regexp.MustCompile(`(?i)concurren|goroutine|at the same time`)
	checked := 0
	for name := range arrows {
		if strings.Contains("/"+name+"/", "/internal/") {
			continue
		}
		dir := filepath.FromSlash(name)
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		var parsed []*ast.File
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			syntax, err := parser.ParseFile(fset, file, text, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, syntax)
		}
		if len(parsed) == 0 {
			continue // tests alone
		}
		pkg, err := doc.NewFromFiles(fset, parsed, module+name)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range pkg.Types {
			switch typ.Decl.Specs[0].(*ast.TypeSpec).Type.(type) {
			case *ast.StructType, *ast.InterfaceType:
				checked++
				if !says.MatchString(typ.Doc) && !says.MatchString(pkg.Doc) {
					t.Errorf("neither %s.%s nor its package says whether it is safe for concurrent use", name, typ.Name)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d types were found", checked)
	}
}
