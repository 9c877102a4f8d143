package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// Whatever goes wrong, and whatever a server quotes of what it was sent, no
// secret is printed.
func TestNoSecretIsPrinted(t *testing.T) {
	for _, status := range []int{200, 302, 400, 401, 410, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			setup := newSetup(t)
			secrets := secretsOfSetup(t, setup)
			pushToken := secrets["push token"]
			parrot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body strings.Builder
				r.Write(&body)
				w.Header().Set("Location", r.URL.String())
				w.WriteHeader(status)
				fmt.Fprint(w, r.RequestURI, r.Header, body.String(), pushToken)
			}))
			defer parrot.Close()
			const user, password, path, query = "operator-7", "hunter2-hunter2", "capability-in-the-path", "capability-in-the-query"
			relayURL := strings.Replace(parrot.URL, "//", "//"+user+":"+password+"@", 1) + "/" + path + "?key=" + query
			for name, value := range map[string]string{
				"user": user, "password": password, "path": path, "query": query,
				"credentials": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
			} {
				secrets[name] = value
			}
			said := relaytest.Answer{Status: status, Body: secrets["client secret"] + " " + secrets["device token"]}
			for _, endpoint := range []relaytest.BridgeEndpoint{
				relaytest.EndpointTokenHealth, relaytest.EndpointRelayHealth, relaytest.EndpointUnregister, relaytest.EndpointPush,
			} {
				setup.bridge.Script(endpoint, relaytest.Always, said)
			}
			args := []string{"-page", "-relay-url", relayURL, "-registry", setup.registry, "-bridge", setup.bridgeConfig}
			searchFor(t, secrets, args)
			setup.bridge.Script(relaytest.EndpointToken, relaytest.Always, said)
			searchFor(t, secrets, args)
			searchFor(t, secrets, append(args, "-json"))
			parrot.Close()
			searchFor(t, secrets, args)
		})
	}
}

func TestUnusableURLIsNotQuoted(t *testing.T) {
	secrets := map[string]string{"password": "hunter2"}
	for _, text := range []string{
		"operator:hunter2@relay.example", "https://operator:hunter2 @relay.example/", "https://relay.example:hunter2/", "ftp://operator:hunter2@relay.example/",
	} {
		searchFor(t, secrets, []string{"-relay-url", text})
	}
}

func secretsOfSetup(t *testing.T, setup *reference) map[string]string {
	t.Helper()
	store, err := pairing.OpenFile(setup.registry)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := bridge.LoadConfig(setup.bridgeConfig)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{
		"salt": snapshot.Salt.Reveal(), "push token": snapshot.Devices[0].PushToken.Reveal(),
		"client secret": config.ClientSecret.Reveal(), "device token": setup.bridge.Devices(config.ClientID)[0].Token.Reveal(),
	}
	for name, value := range secrets {
		if len(value) < 16 {
			t.Fatalf("the %s is %d characters", name, len(value))
		}
	}
	return secrets
}

// searchFor runs the doctor and looks for secrets, and for the JWTs that it got.
func searchFor(t *testing.T, secrets map[string]string, args []string) {
	t.Helper()
	out, _ := doctor(t, args...)
	if !strings.Contains(out, "FAIL") && !strings.Contains(out, "warn") {
		t.Errorf("nothing was wrong:\n%s", out)
	}
	decoded := out // as a reader of the JSON would see it
	var findings struct{ Findings []finding }
	if json.Unmarshal([]byte(out), &findings) == nil {
		decoded += fmt.Sprint(findings)
	}
	for name, secret := range secrets {
		for _, form := range []string{secret, secret[:min(len(secret), 12)], secret[max(0, len(secret)-12):]} {
			if strings.Contains(strings.ToLower(decoded), strings.ToLower(form)) {
				t.Errorf("the %s is printed:\n%s", name, out)
				break
			}
		}
	}
	if strings.Contains(decoded, "eyJ") {
		t.Errorf("a token is printed:\n%s", out)
	}
	if strings.Contains(out, "panic") {
		t.Errorf("it panicked:\n%s", out)
	}
}
