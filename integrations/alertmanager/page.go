package alertmanager

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// What a page has room for, in bytes. Name and host are never cut later on: see payload.Fit.
const (
	maxName     = 160
	maxHost     = 100
	maxReason   = 1000
	maxLine     = 300
	maxTemplate = 4096 // of a template's output
	maxClean    = 4096 // of a text that is cleaned
)

// rules say what a group's page is made of.
type rules struct {
	nameLabels    []string
	hostLabels    []string
	severityLabel string
	passive       []string // severities
	resolved      relayclient.Priority
	template      *template.Template // or nil
}

// page makes the page of a group, but for its run id. The error is that of templates, for which the defaults stand.
func (r *rules) page(g *Group) (payload.Alert, error) {
	var problems []error
	said := func(name, fallback string, limit int) string {
		text, err := r.execute(name, g)
		problems = append(problems, err)
		return cut(oneLine(cmp.Or(text, fallback)), limit)
	}
	name := cmp.Or(said("name", r.name(g), maxName), "alert")
	host := said("host", r.host(g), maxHost)
	alert := payload.NewFailure(host, name)
	if g.resolved() {
		alert = payload.NewSuccess(host, name)
	} else {
		alert.FailReason = said("reason", reason(g), maxReason)
	}
	alert.StartedAt = started(g)
	lines, err := r.tail(g)
	alert.LogTail = lines
	return alert, errors.Join(append(problems, err)...)
}

// priority is the loudest of the alerts that fire.
func (r *rules) priority(g *Group) relayclient.Priority {
	firing := g.firing
	if len(firing) == 0 {
		return r.resolved
	}
	for _, a := range firing {
		if !r.isPassive(a) {
			return relayclient.TimeSensitive
		}
	}
	return relayclient.Passive
}

func (r *rules) isPassive(a Alert) bool {
	return slices.Contains(r.passive, strings.ToLower(a.Labels[r.severityLabel]))
}

// execute returns what the template of that name writes, nothing where there is none.
func (r *rules) execute(name string, data any) (string, error) {
	if r.template == nil || r.template.Lookup(name) == nil {
		return "", nil
	}
	var out bounded
	if err := r.template.ExecuteTemplate(&out, name, data); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.text.String()), nil
}

// bounded takes so much and no more, so that a template ends.
type bounded struct{ text strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxTemplate {
		return 0, fmt.Errorf("it writes more than %d bytes", maxTemplate)
	}
	return b.text.Write(p)
}

// name is what the group is about.
func (r *rules) name(g *Group) string {
	names := distinct(g.about(), r.nameLabels)
	return someOf(names, first(g.CommonLabels, r.nameLabels), first(g.GroupLabels, r.nameLabels))
}

// host is where it happens.
func (r *rules) host(g *Group) string {
	hosts := distinct(g.about(), r.hostLabels)
	for i := range hosts {
		hosts[i] = withoutPort(hosts[i])
	}
	slices.Sort(hosts)
	return someOf(slices.Compact(hosts), first(g.CommonLabels, r.hostLabels))
}

// someOf names the first of several and counts the others; without any, the first of the others that is set.
func someOf(names []string, others ...string) string {
	switch len(names) {
	case 0:
		return cmp.Or(others...)
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// distinct are the values of the first of the labels that each alert has, sorted.
func distinct(alerts Alerts, labels []string) []string {
	seen := map[string]bool{}
	for _, a := range alerts {
		if value := first(a.Labels, labels); value != "" {
			seen[value] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func first(from map[string]string, names []string) string {
	for _, name := range names {
		if value := from[name]; value != "" {
			return value
		}
	}
	return ""
}

// withoutPort is the host of an instance, which may be host:port or, of a probe, a URL.
func withoutPort(instance string) string {
	if u, err := url.Parse(instance); err == nil && u.Host != "" {
		return cmp.Or(u.Hostname(), instance)
	}
	if host, _, err := net.SplitHostPort(instance); err == nil && host != "" {
		return host
	}
	return instance
}

// texts are the annotations that say what is wrong, the shortest first.
var texts = []string{"summary", "description", "message"}

// reason is why the group was paged.
func reason(g *Group) string {
	if len(g.Alerts) == 1 && g.TruncatedAlerts == 0 {
		return first(g.Alerts[0].Annotations, texts)
	}
	text := counts(g)
	if common := first(g.CommonAnnotations, texts); common != "" {
		text += ": " + common
	}
	return text
}

// counts says how many alerts there are of each kind.
func counts(g *Group) string {
	var parts []string
	if n := len(g.firing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d firing", n))
	}
	if n := len(g.Alerts) - len(g.firing); n > 0 {
		parts = append(parts, fmt.Sprintf("%d resolved", n))
	}
	if g.TruncatedAlerts > 0 {
		parts = append(parts, fmt.Sprintf("%d left out by the sender, which may be firing", g.TruncatedAlerts))
	}
	return strings.Join(parts, ", ")
}

// started is when the oldest alert began, of those that fire if there are any. Zero is not known.
func started(g *Group) time.Time {
	var oldest time.Time
	for _, a := range g.about() {
		if year := a.StartsAt.UTC().Year(); year < 1970 || year > 9999 {
			continue
		}
		if oldest.IsZero() || a.StartsAt.Before(oldest) {
			oldest = a.StartsAt
		}
	}
	return oldest
}

// tail are the page's lines. What matters most is last: fitting drops from the start.
func (r *rules) tail(g *Group) ([]string, error) {
	var head []string
	if runbook := first(g.CommonAnnotations, []string{"runbook_url", "runbook"}); runbook != "" {
		head = append(head, "runbook: "+runbook)
	}
	if labels := r.labels(g.CommonLabels, nil); labels != "" {
		head = append(head, labels)
	}
	var lines []string
	var problems []error
	var ranks [3]Alerts
	for _, a := range g.Alerts {
		rank := r.rank(a)
		ranks[rank] = append(ranks[rank], a)
	}
	ordered := slices.Concat(ranks[:]...)
	room := payload.MaxLogLines - len(head) - 1
	if skipped := len(ordered) - room; skipped > 0 {
		ordered = ordered[skipped:]
		head = append(head, fmt.Sprintf("… and %d more", uint64(skipped)+g.TruncatedAlerts))
	} else if g.TruncatedAlerts > 0 {
		head = append(head, fmt.Sprintf("… and %d more", g.TruncatedAlerts))
	}
	for _, a := range ordered {
		text, err := r.execute("line", Line{g, a})
		problems = append(problems, err)
		if text != "" {
			lines = append(lines, text)
		} else if len(g.Alerts) == 1 {
			lines = append(lines, single(g, a)...)
		} else {
			lines = append(lines, r.line(g, a))
		}
	}
	var tail []string
	for _, line := range slices.Concat(head, lines) {
		if line = cut(oneLine(line), maxLine); line != "" {
			tail = append(tail, line)
		}
	}
	return tail[max(0, len(tail)-payload.MaxLogLines):], errors.Join(problems...)
}

// rank puts resolved alerts first and the loudest last.
func (r *rules) rank(a Alert) int {
	switch {
	case a.Status == Resolved:
		return 0
	case r.isPassive(a):
		return 1
	}
	return 2
}

// line tells an alert from the others of its group.
func (r *rules) line(g *Group, a Alert) string {
	text := ""
	if len(g.firing) > 0 && len(g.firing) < len(g.Alerts) {
		text = a.Status + " "
	}
	if name := first(a.Labels, r.nameLabels); name != first(g.CommonLabels, r.nameLabels) {
		text += name + " "
	}
	text += r.labels(a.Labels, g.CommonLabels)
	if about := first(a.Annotations, texts); about != "" && about != first(g.CommonAnnotations, texts) {
		text = strings.TrimSpace(text) + ": " + about
	}
	return strings.TrimPrefix(strings.TrimSpace(text)+values(a), ": ")
}

// single are the lines of an alert that is alone.
func single(g *Group, a Alert) []string {
	var lines []string
	if a.DashboardURL != "" {
		lines = append(lines, "dashboard: "+a.DashboardURL)
	}
	shown := "" // as the reason
	if !g.resolved() {
		shown = first(a.Annotations, texts)
	}
	for _, name := range slices.Backward(texts) { // the summary last
		if text := a.Annotations[name]; text != "" && text != shown {
			lines = append(lines, payload.LogTail(payload.CleanOutput([]byte(cut(text, maxClean))))...)
		}
	}
	return append(lines, strings.TrimSpace(values(a)))
}

// labels writes the labels that are not among the others, but for names and what Grafana keeps for itself.
func (r *rules) labels(of, without map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if slices.Contains(r.nameLabels, name) || strings.HasPrefix(name, "__") {
			continue
		}
		if _, common := without[name]; !common {
			parts = append(parts, name+"="+of[name])
		}
	}
	return strings.Join(parts, " ")
}

// values writes what Grafana measured.
func values(a Alert) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		if number, ok := a.Values[name].(float64); ok {
			parts = append(parts, name+"="+strconv.FormatFloat(number, 'g', 6, 64))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, " ") + ")"
}

// oneLine is a text on one line, without what is not for a person to read.
func oneLine(text string) string {
	return strings.Join(strings.Fields(payload.CleanOutput([]byte(cut(text, maxClean)))), " ")
}

// cut shortens a text to a number of bytes, between two characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
