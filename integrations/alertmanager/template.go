package alertmanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// templateNames are those that a page is made of.
var templateNames = []string{"name", "host", "reason", "line"}

// WithTemplate sets templates for the text of a page: those named "name", "host" and "reason" get a [*Group], that
// named "line" a [Line] for each alert. Where a template is not defined, writes nothing or fails, the page has the
// default text; a failure is logged. A label that is missing is empty. The output is made one line of text, and may
// have 4096 bytes. A template that calls itself is refused, since it may not end.
func WithTemplate(t *template.Template) Option {
	return func(c *config) error {
		if t == nil {
			return errors.New("alertmanager: WithTemplate(nil): leave the option out")
		}
		if !slices.ContainsFunc(templateNames, func(name string) bool { return t.Lookup(name) != nil }) {
			return fmt.Errorf(`alertmanager: the template defines none of %s: write {{define "name"}}…{{end}}`, strings.Join(templateNames, ", "))
		}
		for _, one := range t.Templates() {
			if callsItself(t, one.Name(), nil) {
				return fmt.Errorf("alertmanager: the template %q calls itself", one.Name())
			}
		}
		clone, err := t.Clone()
		if err != nil {
			return fmt.Errorf("alertmanager: WithTemplate: %w", err)
		}
		c.template = clone.Option("missingkey=zero")
		return nil
	}
}

// callsItself reports whether the templates that a template calls, and they in turn, lead to one of those that are open.
func callsItself(t *template.Template, name string, open []string) bool {
	if slices.Contains(open, name) {
		return true
	}
	called := t.Lookup(name)
	if called == nil || called.Tree == nil {
		return false
	}
	open = append(open, name)
	return slices.ContainsFunc(calls(called.Root), func(next string) bool { return callsItself(t, next, open) })
}

// calls are the names of the templates that a node calls.
func calls(node parse.Node) []string {
	switch n := node.(type) {
	case *parse.ListNode:
		var names []string
		if n != nil {
			for _, child := range n.Nodes {
				names = append(names, calls(child)...)
			}
		}
		return names
	case *parse.TemplateNode:
		return []string{n.Name}
	case *parse.IfNode:
		return append(calls(n.List), calls(n.ElseList)...)
	case *parse.RangeNode:
		return append(calls(n.List), calls(n.ElseList)...)
	case *parse.WithNode:
		return append(calls(n.List), calls(n.ElseList)...)
	}
	return nil
}
