package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"text/template"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sealpush/sealpush/integrations/alertmanager"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/secret"
)

const (
	// webhookPatience is how long a webhook waits for a relay that cannot be reached: its sender tries again by itself, and
	// waits 10 s at least for an answer.
	webhookPatience = 5 * time.Second
	// webhookTimeout bounds a webhook's page.
	webhookTimeout = 20 * time.Second
	// maxWebhooks is how many connections there may be.
	maxWebhooks = 200
)

type alertmanagerOptions struct {
	pager                 pagerOptions
	addr                  string
	token, user, password string
	certFile, keyFile     string
	nameLabels            string
	hostLabels            string
	severityLabel         string
	passive               string
	resolved              priority
	template              string
}

func alertmanagerCommand() command {
	return command{
		name:    "alertmanager",
		summary: "page from Prometheus Alertmanager and Grafana: receive their webhooks",
		usage:   "[flags]",
		text: `It takes what Alertmanager's webhook_configs and Grafana's contact points of type Webhook post, at any path, until it is
stopped. A group of alerts is one page, and there is another one when all of them are resolved. docs/sources.md sets it up step by step.

Webhooks must carry a bearer token, or a user and a password. If neither is set, only this machine can post. Over a network,
use a certificate (-tls-cert), or a proxy that has one: otherwise tokens and passwords travel in clear.

Alertmanager is asked to try again (502, 503) until the relay has accepted the alert of one phone.

A template file may define any of "name", "host" and "reason", which get the group, and "line", which gets the group and
an .Alert, with the names that Alertmanager's own templates have:

    {{define "name"}}{{.CommonLabels.alertname}} in {{.CommonLabels.cluster}}{{end}}
    {{define "line"}}{{.Alert.Labels.instance}}: {{.Alert.Annotations.summary}}{{end}}`,
		setup: func(s *settings) runFunc {
			o := alertmanagerOptions{resolved: priority(relayclient.Passive)}
			o.pager.command, o.pager.patience = s.command, patience(webhookPatience)
			s.relayURL(&o.pager.relay)
			s.registry(&o.pager.registry)
			s.host(&o.pager.host)
			s.flags.StringVar(&o.addr, "addr", "127.0.0.1:9099", "`address` to listen on; port 0 takes a free one")
			s.secretVar(&o.token, "token", "bearer `token` that webhooks must carry")
			s.flags.StringVar(&o.user, "user", "", "user `name` that webhooks must carry, with -password, as basic authentication")
			s.secretVar(&o.password, "password", "with -user: the `password`")
			s.path(&o.certFile, "tls-cert", "serve https with the certificate in this PEM `file`")
			s.path(&o.keyFile, "tls-key", "with -tls-cert: the `file` with its private key")
			s.flags.StringVar(&o.nameLabels, "name-labels", "alertname", "`labels`, separated by commas: the first of them that an alert has is its name on the phone")
			s.flags.StringVar(&o.hostLabels, "host-labels", "host,hostname,nodename,node,instance", "`labels`, separated by commas: the first of them that an alert has is its host on the phone, without the port\n(if it has none of them: -host)")
			s.flags.StringVar(&o.severityLabel, "severity-label", "severity", "`label` with an alert's severity")
			s.flags.StringVar(&o.passive, "passive", "info,none,debug,warning", "`severities`, separated by commas, of alerts that make no sound; all other alerts make one")
			s.flags.TextVar(&o.resolved, "resolved", priority(relayclient.Passive), "`priority` of a page that says that alerts are resolved: passive or time-sensitive")
			s.path(&o.template, "template", "`file` with templates of Go's text/template for what the page says")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				return o.run(ctx, s)
			}
		},
	}
}

// run serves until ctx ends, and then finishes the webhooks that have arrived.
func (o alertmanagerOptions) run(ctx context.Context, s *settings) error {
	opts, err := o.options()
	if err != nil {
		return usageError{err}
	}
	p := s.newPager(o.pager)
	defer p.close()
	if p.err != nil {
		return usageError{p.err}
	}
	notifier, err := relayclient.NewNotifier(p.client, p.phones, p.host)
	if err != nil {
		return err
	}
	webhook, err := alertmanager.New(notifier, opts...)
	if err != nil {
		return usageError{err}
	}
	config, scheme := (*tls.Config)(nil), "http"
	if o.certFile != "" {
		certificate, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
		if err != nil {
			return usageError{err}
		}
		config, scheme = &tls.Config{Certificates: []tls.Certificate{certificate}}, "https"
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -addr", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if o.isOpen() && !address.IP.IsLoopback() {
		listener.Close()
		return usagef("without -token, or -user and -password, -addr must be of this machine alone, such as 127.0.0.1:9099: anybody who can post could page")
	}
	listener = netutil.LimitListener(listener, maxWebhooks)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{
		Handler:           webhook,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       webhookTimeout + 15*time.Second,
		WriteTimeout:      webhookTimeout + 20*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	slog.Info("waiting for webhooks", "url", fmt.Sprintf("%s://%s/", scheme, reachable(address)), "registry", p.source.where)
	if err := p.look(lookTimeout); err != nil {
		slog.Warn("nobody can be paged yet", "error", err)
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	slog.Info("stopping when the webhooks that have arrived are answered")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookTimeout+5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// isOpen reports whether webhooks need no credentials.
func (o alertmanagerOptions) isOpen() bool { return o.token == "" && o.password == "" }

// options are those of the package, or what is wrong with them.
func (o alertmanagerOptions) options() ([]alertmanager.Option, error) {
	opts := []alertmanager.Option{
		alertmanager.WithTimeout(webhookTimeout),
		alertmanager.WithNameLabels(list(o.nameLabels)...),
		alertmanager.WithHostLabels(list(o.hostLabels)...),
		alertmanager.WithSeverity(o.severityLabel, list(o.passive)...),
		alertmanager.WithResolvedPriority(relayclient.Priority(o.resolved)),
	}
	if (o.user == "") != (o.password == "") {
		return nil, errors.New("-user and -password go together")
	}
	if (o.certFile == "") != (o.keyFile == "") {
		return nil, errors.New("-tls-cert and -tls-key go together")
	}
	if o.token != "" {
		opts = append(opts, alertmanager.WithBearerToken(secret.New(o.token)))
	}
	if o.password != "" {
		opts = append(opts, alertmanager.WithBasicAuth(o.user, secret.New(o.password)))
	}
	if o.isOpen() {
		opts = append(opts, alertmanager.WithoutAuth())
	}
	if o.template != "" {
		parsed, err := template.ParseFiles(o.template)
		if err != nil {
			return nil, err
		}
		opts = append(opts, alertmanager.WithTemplate(parsed))
	}
	return opts, nil
}

// list splits a text at commas.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}
