package main

import (
	"bytes"
	"io"
	"text/template"
)

// guide is what a reader needs to use the relays. It shows the client's secret, as a token service does once.
type guide struct {
	Base, Sealed, Destination, Inbox, Token, Push, Metrics string
	ClientID, ClientSecret                                 string

	Web        bool
	Invitation string // a link, or "" where it is not to be shown
}

var webGuideTemplate = template.Must(template.New("web guide").Parse(`Sealed relay    {{.Sealed}}
  forwards to   {{.Destination}}
Web phone       {{.Base}}/phone{{with .Metrics}}
Metrics         {{.}}{{end}}
{{with .Invitation}}Invitation      {{.}}
{{else}}Invitation      is in the link that -show-invitation prints
{{end}}{{if not .Reachable}}
Browsers subscribe over https only, or on the same machine: put TLS in front, and give its address with -url.
{{end}}
Open the invitation on the phone: it lets a browser subscribe, so treat it as a password. Then pair the phone where the
alerts come from:

    sealpush pair -relay-url {{.Sealed}}

Ready. Control-C stops it.
`))

// Reachable reports whether browsers subscribe at the relay.
func (g guide) Reachable() bool { return subscribable(g.Base) }

// The curl lines are those of the bridge protocol's manual test, with sed instead of jq, which is not installed
// everywhere. They have no comments, because an interactive zsh does not accept them.
var guideTemplate = template.Must(template.New("guide").Parse(`Sealed relay    {{.Sealed}}
  forwards to   {{.Destination}}{{with .Inbox}}
  inbox         {{.}}{{end}}
Token service   {{.Token}}
Push relay      {{.Push}}{{with .Metrics}}
Metrics         {{.}}{{end}}

For the common.toml of a bridge:

    [push_relay]
    url = "{{.Push}}"
    token_url = "{{.Token}}"
    client_id = "{{.ClientID}}"
    client_secret = "{{.ClientSecret}}"

1. Fetch a push:write JWT:

    TOKEN=$(curl -s -X POST {{.Token}}/token \
      -H "Content-Type: application/json" \
      -d '{"client_id":"{{.ClientID}}","client_secret":"{{.ClientSecret}}"}' \
      | sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p')

2. Register a test device:

    curl -X POST {{.Push}}/register \
      -H "Authorization: Bearer $TOKEN" \
      -H "Content-Type: application/json" \
      -d '{"device_token":"test-token","platform":"ios","bundle_id":"com.aptove.ios"}'

3. Send a test notification:

    curl -X POST {{.Push}}/push \
      -H "Authorization: Bearer $TOKEN" \
      -H "Content-Type: application/json" \
      -d '{"title":"Test","body":"Push relay is working"}'

4. See what arrived:

    curl {{.Base}}/

Ready. Control-C stops it.
`))

// printGuide writes everything in one call, so that other output does not mix with it.
func printGuide(w io.Writer, g guide) error {
	var text bytes.Buffer
	form := guideTemplate
	if g.Web {
		form = webGuideTemplate
	}
	if err := form.Execute(&text, g); err != nil {
		return err
	}
	_, err := text.WriteTo(w)
	return err
}
