// Package alertmanager pages paired phones from Prometheus Alertmanager and from Grafana: a [Handler] that takes what
// their webhooks post.
//
//	webhook, err := alertmanager.New(notifier, alertmanager.WithBearerToken(token))
//	if err != nil {
//		return err
//	}
//	mux.Handle("/alertmanager", webhook)
//
// It reads version 4 of Alertmanager's payload
// (https://prometheus.io/docs/alerting/latest/configuration/#webhook_config), and Grafana's, which has the same
// members, a version of its own and a few more.
//
// # What the phone shows
//
// A group of alerts is one page. While one of them fires it is of kind failure, when all are resolved of kind
// success. The name is the label alertname, or says how many names there are; the host is the first of the labels
// host, hostname, nodename, node and instance, which loses its port. The reason is the annotation summary, or else
// description or message. The log tail has a line for each alert, with the labels that tell it from the others:
// firing alerts come last, because a phone with little room loses the first lines. Options change these rules, and
// [WithTemplate] replaces what they say.
//
// A group makes a sound, unless the label severity of all its firing alerts is info, none, debug or warning. A group
// that is resolved makes none, nor does one of which some alerts have been resolved since its last page and none was
// added.
//
// # Repetitions
//
// The run id is a hash of the group's key and of the firing alerts' fingerprints and start times. A repetition has
// the same one, so that a relay coalesces it and a phone replaces what it shows; another member makes another one. A
// resolved group has the run id of the page that it resolves, which is remembered for the [MaxGroups] groups that
// were paged last; after a restart it is derived from the alerts that were resolved. The kind is part of the collapse
// id, so the two never coalesce.
//
// # Answers
//
// 200 means that the relay accepted the alert of one phone at least. Everything that another attempt may mend is
// 5xx, which Alertmanager repeats at growing intervals and Grafana with the next group interval: 502 when no
// phone's alert was accepted, 503 when no phone is paired, the registry cannot be read, a storm guard holds the
// page back, or too much is under way. What a storm guard holds back is counted once, however often its sender
// tries, and is 200 when the relay has accepted the guard's summary. A payload that cannot be read is 400, one over
// [MaxBody] bytes 413, wrong credentials are 401; neither sender repeats those.
//
// # Alerts that are left out
//
// With max_alerts, Alertmanager leaves alerts out, and calls a group resolved when those that it did not leave out
// are. Nobody can tell from that whether the group is resolved, so the page stays a failure and says so. Do not set
// max_alerts: what does not fit on a phone is left out here.
//
// # Concurrency
//
// A [Handler] is safe for concurrent use. What a template is executed on is a plain value, which the template only
// reads.
package alertmanager
