package alertmanager

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The states of a [Group] and of an [Alert].
const (
	Firing   = "firing"
	Resolved = "resolved"
)

// A Group is what a webhook posts: alerts that were grouped, with the names that Alertmanager's own templates use. Members
// that only one of the two senders has are empty for the other.
type Group struct {
	Receiver          string            `json:"receiver"`
	Status            string            `json:"status"` // Firing or Resolved
	Alerts            Alerts            `json:"alerts"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Version           string            `json:"version"` // "4", of Grafana "1"
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   uint64            `json:"truncatedAlerts"` // alerts that the sender left out

	Title   string `json:"title"`   // Grafana's
	Message string `json:"message"` // Grafana's

	firing Alerts // those of Alerts
}

// An Alert is one of a group.
type Alert struct {
	Status       string            `json:"status"` // Firing or Resolved
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // zero while Grafana's fires
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"` // of the labels

	Values       map[string]any `json:"values"` // Grafana's, by the query's name: numbers; empty without data
	DashboardURL string         `json:"dashboardURL"`
	PanelURL     string         `json:"panelURL"`
	SilenceURL   string         `json:"silenceURL"`
}

// Alerts are those of a group, in the order in which they were posted.
type Alerts []Alert

// Firing returns those that fire.
func (as Alerts) Firing() Alerts { return as.of(Firing) }

// Resolved returns those that are resolved.
func (as Alerts) Resolved() Alerts { return as.of(Resolved) }

func (as Alerts) of(status string) Alerts {
	var found Alerts
	for _, a := range as {
		if a.Status == status {
			found = append(found, a)
		}
	}
	return found
}

// A Line is what the template "line" gets: one alert, and the group that it is in.
type Line struct {
	*Group
	Alert Alert
}

// maxAlerts bounds the alerts of a group. One that Alertmanager posts has some 250 bytes at least, so that MaxBody has no
// room for more; what is made up to be small takes much more memory than its JSON.
const maxAlerts = 20_000

// parseGroup reads a payload.
func parseGroup(body []byte) (*Group, error) {
	var g Group
	posted := struct {
		*Group
		Alerts alertList `json:"alerts"` // instead of the group's
	}{Group: &g}
	if err := json.Unmarshal(body, &posted); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return nil, fmt.Errorf("%s must not be a JSON %s", wrong.Field, wrong.Value)
		}
		if _, ok := errors.AsType[*time.ParseError](err); ok {
			return nil, errors.New("startsAt and endsAt must be times as of RFC 3339")
		}
		if errors.Is(err, errTooManyAlerts) {
			return nil, errTooManyAlerts
		}
		return nil, errors.New("the body must be JSON, as Alertmanager's and Grafana's webhooks post it")
	}
	g.Alerts = Alerts(posted.Alerts)
	if g.Status != Firing && g.Status != Resolved {
		return nil, errors.New(`status must be "firing" or "resolved"`)
	}
	if len(g.Alerts) == 0 && g.TruncatedAlerts == 0 {
		return nil, errors.New("alerts must have one at least")
	}
	for i, a := range g.Alerts {
		if a.Status != Firing && a.Status != Resolved {
			return nil, fmt.Errorf(`alerts[%d].status must be "firing" or "resolved"`, i)
		}
		if len(a.Labels) == 0 {
			return nil, fmt.Errorf("alerts[%d].labels must not be empty", i)
		}
	}
	g.firing = g.Alerts.Firing()
	return &g, nil
}

var errTooManyAlerts = fmt.Errorf("alerts must have at most %d: group by more labels, or set max_alerts", maxAlerts)

// alertList reads alerts one after the other, and no more than there may be.
type alertList Alerts

func (l *alertList) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*Alerts)(l)) // null, or not an array
	}
	*l = nil // a member that comes twice
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		if i == maxAlerts {
			return errTooManyAlerts
		}
		var a Alert
		posted := struct {
			*Alert
			Values numbers `json:"values"` // instead of the alert's
		}{Alert: &a}
		if err := d.Decode(&posted); err != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				inner := *wrong
				inner.Field = strings.TrimSuffix(fmt.Sprintf("alerts[%d].%s", i, wrong.Field), ".")
				return &inner
			}
			return err
		}
		a.Values = posted.Values
		*l = append(*l, a)
	}
	return nil
}

// numbers reads the members of an object that are numbers, and leaves the others.
type numbers map[string]any

func (n *numbers) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	*n = make(numbers, len(members))
	for name, text := range members {
		var number *float64
		if json.Unmarshal(text, &number) == nil && number != nil {
			(*n)[name] = *number
		}
	}
	return nil
}

// resolved reports whether nothing of the group fires. Of alerts that were left out nobody knows.
func (g *Group) resolved() bool {
	return g.Status == Resolved && g.TruncatedAlerts == 0 && len(g.firing) == 0
}

// about are the alerts that a page is about: those that fire, or else all. So what a page says first does not change
// when the sender leaves out an alert that it said before was resolved.
func (g *Group) about() Alerts {
	if len(g.firing) > 0 {
		return g.firing
	}
	return g.Alerts
}
