// Package alertmanager pages paired phones from Prometheus Alertmanager and from Grafana: a [Handler] that receives
// their webhooks.
//
//	webhook, err := alertmanager.New(notifier, alertmanager.WithBearerToken(token))
//	if err != nil {
//		return err
//	}
//	mux.Handle("/alertmanager", webhook)
//
// It reads version 4 of Alertmanager's payload
// (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config), and Grafana's payload, which has the same
// members and some more, and another version number.
//
// # What the phone shows
//
// A group of alerts is one page. It is of kind failure while one of them fires, and of kind success when all are
// resolved. The name is the label alertname; if there are several names, it is the first with the number of the others.
// The host is the first of the labels host, hostname, nodename, node and instance, without a port. The reason is the
// annotation summary, or else description or message. The log tail has a line for each alert, with the labels that
// distinguish it from the others: firing alerts come last, because a phone with little room loses the first lines.
// Options change these rules, and [WithTemplate] replaces the texts.
//
// A group makes a sound, unless the label severity of all its firing alerts is info, none, debug or warning. A group
// that is resolved makes none, nor does one of which some alerts have been resolved since its last page and none was
// added.
//
// # Repetitions
//
// The run id is a hash of the group's key and of the firing alerts' fingerprints and start times. A repetition has the
// same run id, so that a relay coalesces it and a phone replaces what it shows; when an alert is added or removed, the
// run id changes. A resolved group has the run id of the page that it resolves, which is remembered for the [MaxGroups]
// groups that were paged last; after a restart it is derived from the alerts that were resolved. The kind is part of
// the collapse id, so the two never coalesce.
//
// # Answers
//
// 200 means that the relay accepted the alert of one phone at least. Errors that may be gone at the next attempt are
// 5xx, which Alertmanager repeats at growing intervals and Grafana with the next group interval: 502 when no phone's
// alert was accepted, 503 when no phone is paired, the registry cannot be read, a storm guard holds the page back, or
// too much is under way. What a storm guard holds back is counted once, however often its sender tries, and is 200 when
// the relay has accepted the guard's summary. A payload that cannot be read is 400, one over [MaxBody] bytes 413, wrong
// credentials are 401; neither sender repeats those.
//
// # Alerts that are left out
//
// With max_alerts, Alertmanager leaves alerts out, and calls a group resolved when those that it did not leave out are.
// The omitted ones may still fire, so the page stays a failure and says so. Do not set max_alerts: the Handler itself
// omits what does not fit on a phone.
//
// # Concurrency
//
// A [Handler] is safe for concurrent use. Templates only read the values that they are executed on.
package alertmanager
