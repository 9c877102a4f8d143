package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"text/template"
	"time"

	"github.com/sealpush/sealpush/integrations/alertmanager"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

const token = "let-me-in-0123456789"

// A world is a relay with paired phones, and a handler that pages them.
type world struct {
	t        *testing.T
	relay    *relaytest.Relay
	phones   []*relaytest.Phone
	client   *relayclient.Client
	registry *pairing.Registry
	notifier *relayclient.Notifier
	webhook  *alertmanager.Handler
	log      *bytes.Buffer
}

func newWorld(t *testing.T, phones int, opts ...alertmanager.Option) *world {
	t.Helper()
	w := &world{t: t, relay: relaytest.NewRelay(relaytest.InMemory()), log: new(bytes.Buffer)}
	t.Cleanup(w.relay.Close)
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store, pairing.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range phones {
		phone := relaytest.NewPhone()
		w.phones = append(w.phones, phone)
		request := pairing.Request{Name: fmt.Sprint("phone ", i), Platform: "ios", PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()}
		if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
			t.Fatal(err)
		}
	}
	client, err := relayclient.New(w.relay.URL, relayclient.WithHTTPClient(w.relay.Client()), relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	w.client, w.registry = client, registry
	if w.notifier, err = relayclient.NewNotifier(client, registry, "receiver"); err != nil {
		t.Fatal(err)
	}
	w.restart(opts...)
	return w
}

// restart makes a handler that remembers nothing.
func (w *world) restart(opts ...alertmanager.Option) {
	w.t.Helper()
	opts = append([]alertmanager.Option{
		alertmanager.WithBearerToken(secret.New(token)), alertmanager.WithLogger(slog.New(slog.NewTextHandler(w.log, nil))),
	}, opts...)
	var err error
	if w.webhook, err = alertmanager.New(w.notifier, opts...); err != nil {
		w.t.Fatal(err)
	}
}

// post posts a payload with the token and returns the answer.
func (w *world) post(body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/alertmanager", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	for _, f := range change {
		f(r)
	}
	answer := httptest.NewRecorder()
	w.webhook.ServeHTTP(answer, r)
	return answer
}

// page posts a payload that has to be accepted.
func (w *world) page(g group) {
	w.t.Helper()
	if answer := w.post(g.json(w.t)); answer.Code != http.StatusOK {
		w.t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
}

// shown is what the first phone shows, oldest first.
func (w *world) shown() []payload.Alert {
	w.t.Helper()
	received, err := w.phones[0].Received(w.relay)
	if err != nil {
		w.t.Fatal(err)
	}
	var alerts []payload.Alert
	for _, notification := range received {
		alerts = append(alerts, notification.Alert)
	}
	return alerts
}

func (w *world) last() payload.Alert {
	w.t.Helper()
	alerts := w.shown()
	if len(alerts) == 0 {
		w.t.Fatalf("the phone shows nothing; log:\n%s", w.log)
	}
	return alerts[len(alerts)-1]
}

// priorities are those that the relay saw.
func (w *world) priorities() []string {
	w.t.Helper()
	var seen []string
	for _, request := range w.relay.Requests() {
		envelope, err := request.Envelope()
		if err != nil {
			w.t.Fatal(err)
		}
		seen = append(seen, string(envelope.Priority))
	}
	return seen
}

// A group is a payload, as JSON has it.
type group map[string]any

// groupOf is a group of alerts about full disks, by host; a host with a "-" in front is resolved.
func groupOf(hosts ...string) group {
	status, alerts := "resolved", []any{}
	for _, host := range hosts {
		resolved := strings.HasPrefix(host, "-")
		host = strings.TrimPrefix(host, "-")
		alert := map[string]any{
			"status": "firing", "startsAt": "2026-12-01T03:00:00Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "f-" + host,
			"labels":      map[string]any{"alertname": "DiskFull", "instance": host + ":9100", "severity": "critical"},
			"annotations": map[string]any{"summary": "disk of " + host + " is full"},
		}
		if resolved {
			alert["status"], alert["endsAt"] = "resolved", "2026-12-01T03:30:00Z"
		} else {
			status = "firing"
		}
		alerts = append(alerts, alert)
	}
	return group{
		"receiver": "phones", "status": status, "alerts": alerts, "groupLabels": map[string]any{"alertname": "DiskFull"},
		"commonLabels": map[string]any{"alertname": "DiskFull", "severity": "critical"}, "commonAnnotations": map[string]any{},
		"externalURL": "http://am.example:9093", "version": "4", "groupKey": `{}:{alertname="DiskFull"}`, "truncatedAlerts": 0,
	}
}

func (g group) with(key string, value any) group { g[key] = value; return g }

// alert changes a member of the n-th alert.
func (g group) alert(n int, key string, value any) group {
	g["alerts"].([]any)[n].(map[string]any)[key] = value
	return g
}

func (g group) json(t *testing.T) string {
	t.Helper()
	encoded, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// bubble runs a test in which time is the relay's, too.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestWhatThePhoneShows(t *testing.T) {
	for _, tt := range []struct {
		file               string
		name, host, reason string
		tail               []string
		startedAt          string
	}{
		{
			"alertmanager.json", "DiskFull", "db1 and 1 more", "2 firing: Free space ends within four hours.",
			[]string{
				"runbook: https://runbooks.example/disk",
				"cluster=eu job=node",
				"instance=db2:9100 mountpoint=/srv severity=warning: /srv on db2 is 91 % full",
				"instance=db1:9100 mountpoint=/ severity=critical: / on db1 is 97 % full",
			}, "2026-12-01T03:00:00Z",
		},
		{
			"grafana.json", "Queue is long", "mx1.example", "4211 mails wait on mx1",
			[]string{
				"grafana_folder=Mail instance=mx1.example:9154 severity=critical",
				"dashboard: https://grafana.example/d/mail?orgId=1",
				"The queue grows since 03:12.",
				"Is the upstream reachable?",
				"(B=4211 C=1)",
			}, "2026-12-01T03:12:40Z",
		},
		{
			"grafana-nodata.json", "DatasourceNoData", "receiver", "",
			[]string{"grafana_folder=Mail rulename=Queue is long"}, "2026-12-01T03:20:00.123456Z",
		},
	} {
		t.Run(tt.file, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 2)
				if answer := w.post(readFile(t, tt.file)); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "2 of 2 phones") {
					t.Fatalf("answered %d: %s", answer.Code, answer.Body)
				}
				alert := w.last()
				if alert.Kind != payload.KindFailure || alert.Name != tt.name || alert.Host != tt.host || alert.FailReason != tt.reason ||
					alert.StartedAt.Format(time.RFC3339Nano) != tt.startedAt || len(alert.RunID) != 32 {
					t.Errorf("the phone shows %+v", alert)
				}
				if !slices.Equal(alert.LogTail, tt.tail) {
					t.Errorf("its lines are\n%s", strings.Join(alert.LogTail, "\n"))
				}
				if log := w.log.String(); !strings.Contains(log, `level=INFO msg="alert group paged" kind=failure`) ||
					!strings.Contains(log, "run_id="+alert.RunID) || !strings.Contains(log, "phones=2 accepted=2") {
					t.Errorf("log %s", log)
				}
			})
		})
	}
}

// Grafana groups by nothing at all if it is told to, and then posts different rules together.
func TestGrafanaGroupsDifferentRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if answer := w.post(readFile(t, "grafana-two.json")); answer.Code != http.StatusOK {
			t.Fatalf("answered %d: %s", answer.Code, answer.Body)
		}
		failed := w.last()
		want := []string{
			"runbook: https://runbooks.example/mail",
			"grafana_folder=Mail team=blue",
			"resolved Disk is slow severity=info zone=eu-1: reads take 80 ms (A=0.0801235)",
			"firing Queue is long severity=warning zone=us-1: 4211 mails wait (B=4211 C=1)",
		}
		if failed.Kind != payload.KindFailure || failed.Name != "Queue is long" || failed.Host != "receiver" || failed.FailReason != "1 firing, 1 resolved" ||
			!slices.Equal(failed.LogTail, want) {
			t.Errorf("the phone shows %+v", failed)
		}
		over := strings.NewReplacer(`"status": "firing"`, `"status": "resolved"`, `"state": "alerting"`, `"state": "ok"`, `"endsAt": "0001-01-01T00:00:00Z"`, `"endsAt": "2026-12-01T05:00:00+01:00"`)
		w.restart()
		if answer := w.post(over.Replace(readFile(t, "grafana-two.json"))); answer.Code != http.StatusOK {
			t.Fatalf("answered %d: %s", answer.Code, answer.Body)
		}
		if resolved := w.last(); resolved.Kind != payload.KindSuccess || resolved.FailReason != "" {
			t.Errorf("the phone shows %+v", resolved)
		}
		if got, want := w.priorities(), []string{"passive", "passive"}; !slices.Equal(got, want) { // a warning, and then none
			t.Errorf("priorities %v, want %v", got, want)
		}
	})
}

func TestGrafanaMayPut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if answer := w.post(readFile(t, "grafana.json"), func(r *http.Request) { r.Method = http.MethodPut }); answer.Code != http.StatusOK {
			t.Errorf("answered %d: %s", answer.Code, answer.Body)
		}
		if answer := w.post("", func(r *http.Request) { r.Method = http.MethodGet }); answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "POST, PUT" {
			t.Errorf("GET is answered %d", answer.Code)
		}
	})
}

// A repetition makes one page, another member makes another, and all that is resolved closes the page that there was last.
func TestRunIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.page(groupOf("db1"))
		w.page(groupOf("db1"))
		w.page(groupOf("db1").alert(0, "startsAt", "2026-12-01T04:00:00+01:00")) // the same instant
		if n := len(w.shown()); n != 1 {
			t.Fatalf("a repetition makes %d pages", n)
		}
		w.page(groupOf("db2", "db1"))
		w.page(groupOf("db1", "db2")) // in another order
		if n := len(w.shown()); n != 2 {
			t.Fatalf("a new member, and a repetition, make %d pages", n)
		}
		second := w.last()
		w.page(groupOf("-db1", "-db2", "-db3")) // db3 came and went unseen
		resolved := w.last()
		if resolved.Kind != payload.KindSuccess || !resolved.Success || resolved.RunID != second.RunID || resolved.FailReason != "" {
			t.Errorf("the resolved group is %+v, its page was %s", resolved, second.RunID)
		}
		if n := len(w.shown()); n != 3 {
			t.Errorf("%d pages", n)
		}
		w.page(groupOf("db1").alert(0, "startsAt", "2026-12-01T05:00:00Z")) // once more
		if again := w.last(); again.Kind != payload.KindFailure || len(w.shown()) != 4 || again.RunID == second.RunID {
			t.Errorf("a new alarm is %+v", again)
		}
		w.page(groupOf("db1").with("groupKey", "another"))
		if len(w.shown()) != 5 {
			t.Error("the same alert in another group made no page")
		}
		if log := w.log.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
			t.Errorf("log %s", log)
		}
	})
}

func TestResolveAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.page(groupOf("db1", "db2"))
		failed := w.last()
		w.restart()
		w.page(groupOf("-db2", "-db1"))
		if resolved := w.last(); resolved.Kind != payload.KindSuccess || resolved.RunID != failed.RunID {
			t.Errorf("resolved %s, paged %s", resolved.RunID, failed.RunID)
		}
	})
}

// A page that no phone got is none that could be resolved.
func TestOnlyAcceptedPagesAreRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.page(groupOf("db1"))
		first := w.last()
		w.relay.Script(1, relaytest.Answer{Status: http.StatusServiceUnavailable})
		if answer := w.post(groupOf("db1", "db2").json(t)); answer.Code != http.StatusBadGateway {
			t.Fatalf("answered %d", answer.Code)
		}
		w.page(groupOf("-db1", "-db2"))
		if resolved := w.last(); resolved.RunID != first.RunID {
			t.Errorf("resolved %s, paged %s", resolved.RunID, first.RunID)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := groupOf("db1").with("groupKey", "first")
		w.page(first)
		w.relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusAccepted})
		for i := range alertmanager.MaxGroups - 1 {
			w.page(groupOf("db1").with("groupKey", fmt.Sprint("key ", i)))
		}
		resolve := func() string {
			w.relay.ClearScript()
			time.Sleep(time.Hour) // the relay's windows
			w.page(groupOf("-db1", "-db2").with("groupKey", "first"))
			return w.last().RunID
		}
		remembered := w.shown()[0].RunID
		if resolve() != remembered {
			t.Errorf("one of %d groups is forgotten", alertmanager.MaxGroups)
		}
		w.relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusAccepted})
		w.page(groupOf("db1").with("groupKey", "one more"))
		if resolve() == remembered {
			t.Errorf("more than %d groups are remembered", alertmanager.MaxGroups)
		}
	})
}

func TestPartlyResolved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.page(groupOf("db1", "db2"))
		w.page(groupOf("-db1", "db2"))
		alert := w.last()
		if alert.Kind != payload.KindFailure || alert.Host != "db2" || alert.FailReason != "1 firing, 1 resolved" {
			t.Errorf("the phone shows %+v", alert)
		}
		want := []string{"severity=critical", "resolved instance=db1:9100: disk of db1 is full", "firing instance=db2:9100: disk of db2 is full"}
		if !slices.Equal(alert.LogTail, want) {
			t.Errorf("its lines are %q", alert.LogTail)
		}
		w.page(groupOf("db2")) // what was resolved is said once
		if n := len(w.shown()); n != 2 {
			t.Errorf("a repetition makes %d pages", n)
		}
	})
}

// A page that says that there are fewer alarms wakes nobody; a reminder of those that are left does.
func TestFewerAlertsMakeNoSound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var many, fewer []string
		for i := range 65 {
			many = append(many, fmt.Sprint("h", i))
		}
		fewer = append(fewer, "-h0")
		fewer = append(fewer, many[1:]...)
		for _, g := range []group{
			groupOf("db1", "db2"),  // both
			groupOf("-db1", "db2"), // one is resolved
			groupOf("db2"),         // the other again, 4 hours later
			groupOf("-db2", "db3"), // another
			groupOf(many...),       // too many to remember
			groupOf(fewer...),      // one less
			groupOf("-db1", "db2"), // as after a restart: the page before is another one
			groupOf("db2").with("groupKey", "another"),
		} {
			w.page(g)
		}
		want := []string{"time-sensitive", "passive", "time-sensitive", "time-sensitive", "time-sensitive", "time-sensitive", "time-sensitive", "time-sensitive"}
		if got := w.priorities(); !slices.Equal(got, want) {
			t.Errorf("priorities %v, want %v", got, want)
		}
	})
}

func TestSeverityDecidesThePriority(t *testing.T) {
	severity := func(host, value string) group {
		return groupOf(host).alert(0, "labels", map[string]any{"alertname": host, "severity": value, "team": value}).with("groupKey", host)
	}
	both := groupOf("x", "y").with("groupKey", "both").alert(0, "labels", map[string]any{"alertname": "x", "severity": "info"})
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		for _, g := range []group{severity("a", "critical"), severity("b", "Warning"), severity("c", "info"), severity("d", ""), both, groupOf("-x")} {
			w.page(g)
		}
		want := []string{"time-sensitive", "passive", "passive", "time-sensitive", "time-sensitive", "passive"}
		if got := w.priorities(); !slices.Equal(got, want) {
			t.Errorf("priorities %v, want %v", got, want)
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, alertmanager.WithSeverity("team", "Office"), alertmanager.WithResolvedPriority(relayclient.TimeSensitive))
		for _, g := range []group{severity("a", "office"), severity("b", "info"), groupOf("-x")} {
			w.page(g)
		}
		if got, want := w.priorities(), []string{"passive", "time-sensitive", "time-sensitive"}; !slices.Equal(got, want) {
			t.Errorf("priorities %v, want %v", got, want)
		}
	})
}

func TestHostsAndNames(t *testing.T) {
	for _, tt := range []struct {
		labels     string // of one alert each, in JSON
		opts       []alertmanager.Option
		name, host string
	}{
		{`{"alertname":"A","instance":"db1:9100","node":"n1"}`, nil, "A", "n1"},
		{`{"alertname":"A","instance":"[2001:db8::1]:9100"}`, nil, "A", "2001:db8::1"},
		{`{"alertname":"A","instance":"https://shop.example:8443/health"}`, nil, "A", "shop.example"},
		{`{"alertname":"A","instance":"localhost"}`, nil, "A", "localhost"},
		{`{"alertname":"A"}`, nil, "A", "receiver"},
		{`{"job":"x"}`, nil, "alert", "receiver"},
		{`{"alertname":"A\n\u001b[31mB"}`, nil, "A B", "receiver"},
		{`{"alertname":"A","job":"mail","cluster":"eu"}`, []alertmanager.Option{alertmanager.WithNameLabels("none", "job"), alertmanager.WithHostLabels("cluster")}, "mail", "eu"},
		{`{"alertname":"A","instance":"db1:9100"},{"alertname":"B","instance":"db1:9200"},{"alertname":"C","instance":"db1:1"}`, nil, "A and 2 more", "db1"},
		{`{"alertname":"` + strings.Repeat("ä", 500) + `"}`, nil, strings.Repeat("ä", 78) + "…", "receiver"},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, 1, tt.opts...)
			var alerts []string
			for labels := range strings.SplitSeq(tt.labels, "},") {
				alerts = append(alerts, fmt.Sprintf(`{"status":"firing","labels":%s}`, strings.TrimSuffix(labels, "}")+"}"))
			}
			answer := w.post(fmt.Sprintf(`{"status":"firing","version":"4","groupKey":"k","alerts":[%s]}`, strings.Join(alerts, ",")))
			if answer.Code != http.StatusOK {
				t.Fatalf("%s: answered %d: %s", tt.labels, answer.Code, answer.Body)
			}
			if alert := w.last(); alert.Name != tt.name || alert.Host != tt.host {
				t.Errorf("%s: %q on %q", tt.labels, alert.Name, alert.Host)
			}
		})
	}
}

func TestTemplate(t *testing.T) {
	parse := func(text string) alertmanager.Option {
		return alertmanager.WithTemplate(template.Must(template.New("").Parse(text)))
	}
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, parse(`
{{define "name"}}{{.GroupLabels.alertname}} in {{.CommonLabels.cluster}}{{end}}
{{define "host"}}{{with index .Alerts 0}}{{.Labels.mountpoint}}{{.Labels.nothing}}{{end}}{{end}}
{{define "reason"}}
	{{len .Alerts.Firing}} of {{len .Alerts}}
{{end}}
{{define "line"}}{{.Alert.Labels.instance}} ({{.Status}}){{end}}`))
		if answer := w.post(readFile(t, "alertmanager.json")); answer.Code != http.StatusOK {
			t.Fatal(answer.Code)
		}
		alert := w.last()
		if alert.Name != "DiskFull in eu" || alert.Host != "/" || alert.FailReason != "2 of 2" ||
			!slices.Equal(alert.LogTail[2:], []string{"db2:9100 (firing)", "db1:9100 (firing)"}) {
			t.Errorf("the phone shows %+v", alert)
		}
	})
	bubble(t, func(t *testing.T) { // what fails, or never ends, costs no page
		w := newWorld(t, 1, parse(`{{define "name"}}{{index .Alerts 7}}{{end}}{{define "reason"}}{{range .Alerts}}{{range $.Alerts}}{{printf "%2000s" "x"}}{{end}}{{end}}{{end}}{{define "line"}}  {{end}}`))
		if answer := w.post(readFile(t, "alertmanager.json")); answer.Code != http.StatusOK {
			t.Fatal(answer.Code)
		}
		if alert := w.last(); alert.Name != "DiskFull" || !strings.HasPrefix(alert.FailReason, "2 firing") || len(alert.LogTail) != 4 {
			t.Errorf("the phone shows %+v", alert)
		}
		if log := w.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "template") {
			t.Errorf("log %s", log)
		}
	})
}

// What is left out by the sender may be firing.
func TestTruncatedAlerts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.page(groupOf("db1", "db2").with("truncatedAlerts", 3))
		first := w.last()
		if first.FailReason != "2 firing, 3 left out by the sender, which may be firing" || !slices.Contains(first.LogTail, "… and 3 more") {
			t.Errorf("the phone shows %+v", first)
		}
		w.page(groupOf("db1", "db2").with("truncatedAlerts", 4)) // a new member
		second := w.last()
		if second.RunID == first.RunID {
			t.Error("a new member that is left out coalesces")
		}
		w.page(groupOf("-db1", "-db2").with("truncatedAlerts", 4))
		if unsure := w.last(); unsure.Kind != payload.KindFailure || !strings.HasPrefix(unsure.FailReason, "2 resolved, 4 left out") {
			t.Errorf("the phone shows %+v", unsure)
		}
		w.page(groupOf("-db1", "-db2"))
		if resolved := w.last(); resolved.Kind != payload.KindSuccess || resolved.RunID != second.RunID {
			t.Errorf("resolved as %+v", resolved)
		}
		want := []string{"time-sensitive", "time-sensitive", "passive", "passive"}
		if got := w.priorities(); !slices.Equal(got, want) {
			t.Errorf("priorities %v, want %v", got, want)
		}
	})
}

func TestThousandAlertsAreOnePage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var hosts []string
		for i := range 1000 {
			hosts = append(hosts, fmt.Sprintf("node%04d", i))
		}
		w.page(groupOf(hosts...))
		alert := w.last()
		if alert.FailReason != "1000 firing" || alert.Host != "node0000 and 999 more" || len(alert.LogTail) < 10 || alert.LogTail[len(alert.LogTail)-1] != "instance=node0999:9100: disk of node0999 is full" {
			t.Errorf("the phone shows %+v", alert)
		}
	})
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		phones int
		break_ func(*world)
		status int
		says   string
	}{
		{"all accept", 2, func(*world) {}, 200, "2 of 2"},
		{"one accepts", 2, func(w *world) {
			w.relay.ScriptDevice(w.phones[0].PushToken(), relaytest.Always, relaytest.Answer{Status: 410})
		}, 200, "1 of 2"},
		{"nobody accepts", 2, func(w *world) { w.relay.Script(2, relaytest.Answer{Status: 429}) }, 502, "for no phone"},
		{"the relay hangs", 1, func(w *world) { w.relay.Script(1, relaytest.Answer{Delay: time.Hour}) }, 502, "for no phone"},
		{"the relay is gone", 1, func(w *world) { w.relay.Close() }, 502, "for no phone"},
		{"nobody is paired", 0, func(*world) {}, 503, "no phone is paired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, tt.phones)
				tt.break_(w)
				start := time.Now()
				answer := w.post(groupOf("db1").json(t))
				if answer.Code != tt.status || !strings.Contains(answer.Body.String(), tt.says) {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				if took := time.Since(start); took > alertmanager.DefaultTimeout {
					t.Errorf("took %v", took)
				}
				level := "level=INFO"
				if tt.status != 200 {
					level = "level=WARN"
				}
				if log := w.log.String(); strings.Count(log, "level=") != 1 || !strings.Contains(log, level) || !strings.Contains(log, "name=DiskFull") {
					t.Errorf("log %s", log)
				}
				if tt.status == 502 && tt.name == "nobody accepts" { // the sender tries again
					w.page(groupOf("db1"))
					if len(w.shown()) != 1 {
						t.Error("the second attempt made no page")
					}
				}
			})
		})
	}
}

// What the storm guard holds back is asked for again until the relay has accepted its page, or the summary that counts it,
// once, however often its sender has tried.
func TestHeldBackInAStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var err error
		w.notifier, err = relayclient.NewNotifier(w.client, w.registry, "receiver", relayclient.WithStormGuard(5))
		if err != nil {
			t.Fatal(err)
		}
		defer w.notifier.Close(t.Context())
		w.restart()
		for i := range 5 {
			w.page(groupOf("db1").with("groupKey", fmt.Sprint(i)))
		}
		start := time.Now()
		held := make(map[string]bool)
		for i := range 50 {
			held[groupOf("db2").with("groupKey", fmt.Sprint("held", i)).json(t)] = true
		}
		for len(held) > 0 && time.Since(start) < time.Minute {
			for body := range held {
				switch answer := w.post(body); {
				case answer.Code == http.StatusOK:
					delete(held, body)
				case answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "storm"):
					t.Fatalf("answered %d: %s", answer.Code, answer.Body)
				}
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(start); took < 10*time.Second || took > 15*time.Second || len(held) > 0 {
			t.Errorf("after %v, %d groups are still asked for", took, len(held))
		}
		summaries := 0
		for _, alert := range w.shown() {
			if alert.Name == "alerts held back" {
				summaries++
				if !strings.HasPrefix(alert.FailReason, "50 alerts held back") {
					t.Errorf("the summary says %q", alert.FailReason)
				}
			}
		}
		if summaries != 1 {
			t.Errorf("%d summaries", summaries)
		}
	})
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, alertmanager.WithTimeout(3*time.Second))
		w.relay.Script(1, relaytest.Answer{Delay: time.Hour})
		start := time.Now()
		if answer := w.post(groupOf("db1").json(t)); answer.Code != http.StatusBadGateway || time.Since(start) != 3*time.Second {
			t.Errorf("answered %d after %v", answer.Code, time.Since(start))
		}
	})
}

// Webhooks that find no place are asked to come again.
func TestMoreAtOnceThanArePaged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, alertmanager.WithTimeout(5*time.Second))
		hold := make(chan struct{})
		w.relay.Script(relaytest.Always, relaytest.Answer{Hold: hold})
		answers := make(chan int, 200)
		for i := range 200 {
			go func() { answers <- w.post(groupOf("db1").with("groupKey", fmt.Sprint(i)).json(t)).Code }()
		}
		synctest.Wait()
		if n := w.relay.Stats().InFlight; n != 64 {
			t.Errorf("%d pages at once", n)
		}
		counts := map[int]int{}
		for range 200 {
			counts[<-answers]++
		}
		close(hold)
		if counts[502]+counts[503] != 200 || counts[503] == 0 {
			t.Errorf("answered %v", counts)
		}
	})
}

func TestBadPayloadsAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ body, says string }{
		"empty":           {"", "must be JSON"},
		"no JSON":         {"status=firing", "must be JSON"},
		"cut":             {groupOf("db1").json(t)[:200], "must be JSON"},
		"trailing":        {groupOf("db1").json(t) + "{}", "must be JSON"},
		"a list":          {"[]", "must be JSON"},
		"null":            {"null", "status must be"},
		"no status":       {`{"alerts":[{"status":"firing","labels":{"a":"b"}}]}`, "status must be"},
		"another status":  {groupOf("db1").with("status", "pending").json(t), "status must be"},
		"no alerts":       {groupOf().with("status", "firing").json(t), "alerts must have one"},
		"an alert's":      {groupOf("db1").alert(0, "status", "").json(t), "alerts[0].status"},
		"no labels":       {groupOf("db1").alert(0, "labels", nil).json(t), "alerts[0].labels"},
		"old version":     {groupOf("db1").with("groupKey", 17).json(t), "groupKey must not be a JSON number"},
		"a time":          {groupOf("db1").alert(0, "startsAt", "yesterday").json(t), "startsAt"},
		"negative":        {groupOf("db1").with("truncatedAlerts", -1).json(t), "truncatedAlerts"},
		"a label's value": {groupOf("db1").alert(0, "labels", map[string]any{"a": 1}).json(t), "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 1)
				answer := w.post(tt.body)
				if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), tt.says) {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				if log := w.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "status=400") {
					t.Errorf("log %s", log)
				}
				if len(w.relay.Requests()) != 0 {
					t.Error("it paged")
				}
			})
		})
	}
}

func TestBodyIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		fill := func(size int) string {
			g := groupOf("db1")
			room := size - len(g.with("externalURL", "").json(t))
			return g.with("externalURL", strings.Repeat("x", room)).json(t)
		}
		if answer := w.post(fill(alertmanager.MaxBody)); answer.Code != http.StatusOK {
			t.Errorf("a body of %d bytes is answered %d: %s", alertmanager.MaxBody, answer.Code, answer.Body)
		}
		if answer := w.post(fill(alertmanager.MaxBody + 1)); answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.log.String(), "max_alerts") {
			t.Errorf("one more byte is answered %d: %s", answer.Code, answer.Body)
		}
	})
}

// JSON that is made up to be larger once it is read does not get so far.
func TestWhatIsReadTakesLittleMemory(t *testing.T) {
	alert := `{"status":"firing","labels":{"a":"b"},"values":{"B":1,"C":[]`
	for name, tt := range map[string]struct {
		start, again, end string
		status            int
	}{
		"alerts": {`{"status":"firing","alerts":[{}`, `,{}`, `]}`, http.StatusBadRequest},
		"values": {`{"status":"firing","groupKey":"a","alerts":[` + alert + `,"D":[{}`, `,{}`, `]}}]}`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 1)
				body := tt.start + strings.Repeat(tt.again, (alertmanager.MaxBody-200)/len(tt.again)) + tt.end
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				answer := w.post(body)
				runtime.ReadMemStats(&after)
				if answer.Code != tt.status || tt.status != http.StatusOK && !strings.Contains(answer.Body.String(), "at most 20000") {
					t.Errorf("answered %d: %s", answer.Code, answer.Body)
				}
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
					t.Errorf("it took %d MiB", took)
				}
				if tt.status == http.StatusOK && !strings.Contains(strings.Join(w.last().LogTail, " "), "(B=1)") {
					t.Errorf("the phone shows %+v", w.last())
				}
			})
		})
	}
}

func TestAuth(t *testing.T) {
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	bearer := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, alertmanager.WithBasicAuth("am", secret.New("pass:word")))
		for _, tt := range []struct {
			name   string
			change func(*http.Request)
			status int
		}{
			{"nothing", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
			{"another token", bearer("Bearer " + token + "x"), 401},
			{"an empty token", bearer("Bearer "), 401},
			{"another scheme", bearer("Token " + token), 401},
			{"the token", bearer("bearer " + token), 200},
			{"user and password", basic("am", "pass:word"), 200},
			{"another user", basic("pm", "pass:word"), 401},
			{"another password", basic("am", "pass:wore"), 401},
			{"no password", basic("am", ""), 401},
		} {
			answer := w.post(groupOf("db1").json(t), tt.change)
			if answer.Code != tt.status || (answer.Code == 401) != (len(answer.Header().Values("WWW-Authenticate")) == 2) {
				t.Errorf("%s: answered %d %v", tt.name, answer.Code, answer.Header())
			}
		}
		if log := w.log.String(); strings.Count(log, "level=WARN") != 1 || strings.Contains(log, token) || strings.Contains(log, "pass:wor") {
			t.Errorf("log %s", log)
		}
		time.Sleep(time.Minute)
		w.post("", bearer(""))
		if log := w.log.String(); !strings.Contains(log, "requests=7") { // one line a minute counts them
			t.Errorf("log %s", log)
		}
	})
}

// Without credentials, nothing that a browser shows may page: neither a page of another site, nor one whose name has come
// to lead to this machine.
func TestWithoutAuthNoBrowserPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var err error
		if w.webhook, err = alertmanager.New(w.notifier, alertmanager.WithoutAuth(), alertmanager.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
			t.Fatal(err)
		}
		anonymous := func(r *http.Request) { r.Header.Del("Authorization") }
		if answer := w.post(groupOf("db1").json(t), anonymous); answer.Code != http.StatusOK {
			t.Errorf("answered %d", answer.Code)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "sec-fetch-site": "same-origin", "Origin": "http://rebound.example"} {
			browser := func(r *http.Request) {
				r.Host = "rebound.example"
				r.Header.Set(name, value)
			}
			if answer := w.post(groupOf("db2").json(t), anonymous, browser); answer.Code != http.StatusForbidden {
				t.Errorf("%s: answered %d", name, answer.Code)
			}
		}
		if len(w.shown()) != 1 {
			t.Error("a page in a browser pages")
		}
	})
}

func TestBadOptions(t *testing.T) {
	auth := alertmanager.WithoutAuth()
	for name, opts := range map[string][]alertmanager.Option{
		"nil":              {auth, nil},
		"no auth":          {},
		"auth and none":    {auth, alertmanager.WithBearerToken(secret.New("x"))},
		"empty token":      {alertmanager.WithBearerToken(secret.New(""))},
		"token with space": {alertmanager.WithBearerToken(secret.New("a b"))},
		"token and space":  {alertmanager.WithBearerToken(secret.New("ab\n"))},
		"no user":          {alertmanager.WithBasicAuth("", secret.New("x"))},
		"user with colon":  {alertmanager.WithBasicAuth("a:b", secret.New("x"))},
		"no password":      {alertmanager.WithBasicAuth("a", secret.Text{})},
		"name labels":      {auth, alertmanager.WithNameLabels()},
		"host labels":      {auth, alertmanager.WithHostLabels("node", "")},
		"severity":         {auth, alertmanager.WithSeverity("")},
		"priority":         {auth, alertmanager.WithResolvedPriority(7)},
		"no template":      {auth, alertmanager.WithTemplate(nil)},
		"other templates":  {auth, alertmanager.WithTemplate(template.Must(template.New("x").Parse("y")))},
		"recursion":        {auth, alertmanager.WithTemplate(template.Must(template.New("").Parse(`{{define "name"}}{{with .}}{{template "x" .}}{{end}}{{end}}{{define "x"}}{{range .Alerts}}{{else}}{{template "name" $}}{{end}}{{end}}`)))},
		"timeout":          {auth, alertmanager.WithTimeout(0)},
	} {
		if _, err := alertmanager.New(new(relayclient.Notifier), opts...); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := alertmanager.New(nil, auth); err == nil {
		t.Error("no Notifier is taken")
	}
}

// Whatever an accepted payload holds, its page can be sent to a phone with little room.
func FuzzPage(f *testing.F) {
	for _, name := range []string{"alertmanager.json", "grafana.json", "grafana-nodata.json", "grafana-two.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"status":"firing","truncatedAlerts":18446744073709551615,"alerts":[{"status":"resolved","startsAt":"0000-01-01T00:00:00+23:00","labels":{"":""}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		alert, err := alertmanager.PageOf(body)
		if err != nil {
			return
		}
		if alert.Host == "" {
			alert.Host = "receiver"
		}
		if _, err := payload.Fit(alert, seal.XWing.MaxPlaintext(3000)); err != nil {
			t.Errorf("%v: %+v", err, alert)
		}
		again, _ := alertmanager.PageOf(body)
		if again.RunID != alert.RunID || again.Name != alert.Name {
			t.Errorf("the same payload twice: %+v and %+v", alert, again)
		}
	})
}
