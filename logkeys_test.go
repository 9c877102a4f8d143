package sealpush_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// otherNames are keys that have another name in the log: whoever searches it for
// a device or a job run must not have to know who wrote the line.
var otherNames = map[string]string{
	"id": "device", "device_id": "device", "job": "name", "alert": "kind", "run": "run_id", "err": "error", "status_code": "status",
}

// A thing has one key in the log, in snake_case, whichever package writes the line.
func TestLogKeys(t *testing.T) {
	found := map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, key := range logKeys(call) {
				found[key]++
				at := files.Position(call.Pos())
				if !regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`).MatchString(key) {
					t.Errorf("%s: the log key %q is not snake_case", at, key)
				}
				if name := otherNames[key]; name != "" {
					t.Errorf("%s: the log key %q is %q elsewhere", at, key, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"kind", "name", "run_id", "device", "status", "error"} {
		if found[key] == 0 {
			t.Errorf("no line has the key %q", key)
		}
	}
}

// logKeys are the keys that a call of log/slog names: the first text of slog.String
// and its like, or every other argument after a logger's message.
func logKeys(call *ast.CallExpr) []string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if pkg, ok := method.X.(*ast.Ident); ok && pkg.Name == "http" {
		return nil // http.Error
	}
	first := 0
	switch method.Sel.Name {
	case "String", "Int", "Int64", "Any", "Bool", "Duration", "Time", "Group":
		if pkg, ok := method.X.(*ast.Ident); !ok || pkg.Name != "slog" || len(call.Args) < 2 {
			return nil
		}
		key, _ := literal(call.Args[0])
		return []string{key}
	case "Debug", "Info", "Warn", "Error":
		first = 1
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		first = 2
	case "Log":
		first = 3
	default:
		return nil
	}
	var keys []string
	for i := first; i < len(call.Args); i++ {
		if key, ok := literal(call.Args[i]); ok {
			keys = append(keys, key)
			i++ // its value
		}
	}
	return keys
}

func literal(expression ast.Expr) (string, bool) {
	lit, ok := expression.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}
