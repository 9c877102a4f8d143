package docs_test

import (
	"cmp"
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

// Every message that heads a section of the page is one that the sources can
// print, and every warning that they can log is on the page.
func TestTroubleshootingQuotesRealMessages(t *testing.T) {
	page := readFile(t, "troubleshooting.md")
	sources := readSources(t)
	messages := quotedMessages(page)
	if len(messages) < 40 {
		t.Errorf("found %d messages on the page", len(messages))
	}
	for _, message := range messages {
		for piece := range strings.SplitSeq(message, "…") {
			if piece = strings.Trim(piece, " :"); piece != "" && !sources.print(piece) {
				t.Errorf("nothing prints %q, of %q", piece, message)
			}
		}
	}
	if len(sources.warnings) < 12 {
		t.Errorf("found %d warnings in the sources: %q", len(sources.warnings), sources.warnings)
	}
	for _, warning := range sources.warnings {
		if start, _, _ := strings.Cut(warning, ","); !strings.Contains(page, start) {
			t.Errorf("the page does not say what to do about %q", warning)
		}
	}
}

// Links within the page lead somewhere.
func TestTroubleshootingLinks(t *testing.T) {
	page := readFile(t, "troubleshooting.md")
	anchors := map[string]bool{}
	for line := range strings.Lines(page) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			anchors[anchor(heading)] = true
		}
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(page, -1)
	if len(links) < 8 {
		t.Errorf("found %d links", len(links))
	}
	for _, link := range links {
		if !anchors[link[1]] {
			t.Errorf("no heading #%s", link[1])
		}
	}
}

// anchor is how GitHub names a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(kept, " ", "-")
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	verb     = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)
)

// quotedMessages are the code spans of headings, and those in tables and in
// running text that read like a message: of three words or more.
func quotedMessages(page string) []string {
	var messages []string
	for line := range strings.Lines(page) {
		for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
			text := span[1]
			toolchain := strings.HasPrefix(text, "go: ")
			if strings.HasPrefix(line, "### ") || len(strings.Fields(text)) > 2 && !toolchain {
				messages = append(messages, text)
			}
		}
	}
	return messages
}

// sources are the string literals of the module's libraries.
type sources struct {
	literals []string // what stands between the verbs of each
	warnings []string // that are logged at Warn or Error, or at a level that depends
}

func (s sources) print(piece string) bool {
	for _, literal := range s.literals {
		if strings.Contains(literal, piece) {
			return true
		}
	}
	return false
}

func readSources(t *testing.T) sources {
	t.Helper()
	var found sources
	for _, dir := range []string{"seal", "payload", "pushauth", "relay", "relayclient", "integrations", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() == "storetest" || entry.Name() == "conformance" {
				return cmp.Or(err, filepath.SkipDir)
			}
			if filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				found.read(t, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func (s *sources) read(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if expression, ok := node.(ast.Expr); ok {
			if text, ok := textOf(expression); ok {
				s.literals = append(s.literals, verb.Split(text, -1)...)
			}
		}
		if call, ok := node.(*ast.CallExpr); ok {
			s.addWarning(call)
		}
		return true
	})
}

// addWarning looks for calls of a logger, whose message is the first text.
func (s *sources) addWarning(call *ast.CallExpr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if pkg, ok := method.X.(*ast.Ident); ok && pkg.Name == "http" {
		return // http.Error
	}
	switch method.Sel.Name {
	case "Warn", "WarnContext", "Error", "ErrorContext", "Log", "LogAttrs", "log", "logLine":
	default:
		return
	}
	for _, argument := range call.Args {
		if text, ok := textOf(argument); ok {
			s.warnings = append(s.warnings, text)
			return
		}
	}
}

// textOf is the value of a literal, or of several that are added up.
func textOf(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, okLeft := textOf(e.X)
		right, okRight := textOf(e.Y)
		return left + right, okLeft && okRight
	}
	return "", false
}
