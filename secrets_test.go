package sealpush_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/sealpush/sealpush/integrations/alertmanager"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// The secrets of these tests. None has eight characters in common with what may be shown.
const (
	clientSecret = "hunter2-Zq8vK1mW-client"
	bearerToken  = "eyJub3QiOiJyZWFsIn0.Yk3RwPd0Qx.Tn5LsGf2"
	deviceToken  = "9e30691c238642ea126a1e48cc11d357"
	fcmToken     = "fGc8Ub-x9QtEw:APA91bHun7MXP3s"
	fleetSalt    = "4cf956b7261a9bc5628f2ffa5544190c"
	relayUser    = "parkerUser77"
	relayPass    = "correctHorse99"
	relayQuery   = "topQuery55secret"
	agentMessage = "the merger is off, tell nobody"
)

var (
	phoneKey = seal.GenerateKey()
	ecdsaKey = sync.OnceValue(func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		return key
	})
)

// hasSecrets gives one value of each exported type that holds a secret. Whoever adds such a type adds a line.
func hasSecrets(t *testing.T) map[string]any {
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	config := bridge.Config{URL: "https://relay.example", TokenURL: "https://token.example", ClientID: "bridge", ClientSecret: secret.New(clientSecret)}
	credentials := pushauth.Credentials{TokenURL: config.TokenURL, ClientID: config.ClientID, ClientSecret: secret.New(clientSecret)}
	source, err := pushauth.NewSource(credentials)
	must(err)
	quiet := slog.New(slog.DiscardHandler)
	caller, err := bridge.New(config, bridge.WithLogger(quiet))
	must(err)
	sender, err := relayclient.New("https://" + relayUser + ":" + relayPass + "@relay.example/?key=" + relayQuery)
	must(err)
	outbox, err := bridge.NewOutbox(nil, bridge.Notification{Title: "Agent", Body: "New activity"})
	must(err)
	must(outbox.Send(t.Context(), []byte(agentMessage)))
	device := pairing.Device{ID: "02177c7da112d2b0", Name: "phone", Platform: "ios", PushToken: secret.New(deviceToken), PublicKey: phoneKey.Public()}
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	must(err)
	_, err = store.EnsureSalt(t.Context(), secret.New(fleetSalt))
	must(err)
	registry, err := pairing.NewRegistry(store, pairing.WithLogger(quiet))
	must(err)
	recipients := registry.Recipients(t.Context())
	recipients.Devices = []pairing.Device{device}
	database, err := pairing.NewSQL(sql.OpenDB(connector{dsn: "postgres://" + relayUser + ":" + relayPass + "@db"}), pairing.PostgreSQL)
	must(err)
	notifier, err := relayclient.NewNotifier(sender, registry, "host")
	must(err)
	der, err := x509.MarshalPKCS8PrivateKey(ecdsaKey())
	must(err)
	apnsKey, err := apns.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "ABCDE12345", "TEAMID1234")
	must(err)
	webhook, err := alertmanager.New(notifier, alertmanager.WithBearerToken(secret.New(bearerToken)), alertmanager.WithBasicAuth(relayUser, secret.New(relayPass)))
	must(err)
	private, err := ecdsaKey().Bytes()
	must(err)
	vapidKey, err := webpush.ParseKey(secret.New(base64.RawURLEncoding.EncodeToString(private)))
	must(err)
	browser, err := webpush.New(vapidKey, "mailto:ops@example.com", webpush.NewMemoryStore())
	must(err)
	subscriptions, err := webpush.NewSubscriptions(browser, secret.New(bearerToken))
	must(err)
	subscription := webpush.Subscription{Endpoint: secret.New("https://push.example/" + deviceToken), Auth: secret.New(fcmToken)}
	browsers, err := webpush.NewSQLStore(sql.OpenDB(connector{dsn: "postgres://" + relayUser + ":" + relayPass + "@db"}), relay.PostgreSQL)
	must(err)
	return map[string]any{
		"alertmanager.Handler":   webhook,
		"apns.Key":               apnsKey,
		"bridge.Client":          caller,
		"bridge.Config":          config,
		"bridge.Device":          bridge.Device{Token: secret.New(fcmToken), Platform: "android"},
		"bridge.Outbox":          outbox,
		"bridge.PairingResponse": bridge.PairingResponse{AuthToken: secret.New(bearerToken)},
		"conformance.Bridge":     conformance.Bridge{ClientSecret: secret.New(clientSecret)},
		"pairing.Device":         device,
		"pairing.FileStore":      store,
		"pairing.WebLink":        pairing.WebLink{Name: "node-a", Key: phoneKey.Public(), Invitation: secret.New(bearerToken)},
		"pairing.Link":           pairing.Link{Name: "node-a", URL: "https://daemon.lan", Token: secret.New(bearerToken)},
		"pairing.Recipients":     recipients,
		"pairing.Registry":       registry,
		"pairing.Request":        pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(deviceToken), PublicKey: phoneKey.Public()},
		"pairing.SQLStore":       database,
		"pairing.Snapshot":       pairing.Snapshot{Salt: secret.New(fleetSalt), Devices: []pairing.Device{device}},
		"pushauth.Credentials":   credentials,
		"pushauth.Source":        source,
		"pushauth.Token":         pushauth.Token{Value: secret.New(bearerToken)},
		"pushauth.Transport":     &pushauth.Transport{Source: source},
		"relayclient.Client":     sender,
		"relayclient.Notifier":   notifier,
		"relayclient.Push":       relayclient.Push{Salt: secret.New(fleetSalt)},
		"relay.BridgeDevice":     relay.BridgeDevice{Token: secret.New(fcmToken), Platform: "android"},
		"relaytest.Phone":        relaytest.NewPhone(relaytest.WithPrivateKey(phoneKey), relaytest.WithPushToken(deviceToken)),
		"relaytest.Request":      relaytest.Request{Query: relayQuery, Header: http.Header{"Authorization": {bearerToken}}, Body: []byte(agentMessage)},
		"seal.PrivateKey":        phoneKey,
		"webpush.Forwarder":      browser,
		"webpush.Key":            vapidKey,
		"webpush.SQLStore":       browsers,
		"webpush.Stored":         webpush.Stored{Subscription: subscription},
		"webpush.Subscription":   subscription,
		"webpush.Subscriptions":  subscriptions,
	}
}

// connector holds what a database driver keeps of its data source name.
type connector struct {
	driver.Connector
	dsn string
}

func (connector) Driver() driver.Driver { return nil }

// noSecrets are the fields that are named like secrets and are none.
var noSecrets = map[string]string{
	"conformance.Report.TokenService": "the name of a service",
	"apns.Forwarder.tokens":           "prints by its Format; tested there",
	"alertmanager.Group.GroupKey":     "names a group",
	"bridge.Notification.Body":        "the relay, Apple and Google read it",
	"payload.Alert.RunKey":            "names a run",
	"payload.Alert.TaskKey":           "names a task",
	"relayclient.StatusError.Body":    "redacted when it is made",
	"relaytest.Answer.Body":           "what a test scripts",
	"relaytest.Answer.Header":         "what a test scripts",
	"jobpage.Job.config":              "a logger, names and times",
	"jobpage.Pager.config":            "a logger, names and times",
	"notifypage.Service.config":       "a name and a priority",
	"relay.Mailboxes.config":          "limits and public origins",
	"relay.Bridge.config":             "whom it asks; a verifier's keys are public",
	"relay.Relay.config":              "its parts print by their own methods",
	"relay.TokenService.adminSecret":  "a function, which prints as an address",
	"relay.TokenService.config":       "its key is a pointer, which prints as an address",
	"relay.BridgePush.Body":           "the relay reads it",
	"relaytest.BridgeService.tokens":  "a pointer; its URLs are what a test needs",
	"apns.Message.Header":             "names an alert by its collapse id",
	"relaytest.Relay.config":          "prints by its Format; tested there",
	"verify.Verifier.config":          "what a relay demands is public",
	"webpushtest.Message.Header":      "what a test looks at",
}

// notHidden are the types that print what they hold when they are in an unexported field of interface type, where fmt calls
// no methods.
var notHidden = map[string]string{
	"bridge.Outbox":     "as the *Outbox that NewOutbox returns it prints as an address",
	"relaytest.Request": "what a test looks at",
}

// forTheApp are the types whose JSON carries the secret, as that is what they are for.
var forTheApp = map[string]bool{"bridge.PairingResponse": true}

// Missing are %p, %w and a pointer within another value: where one is a mistake, fmt prints what is there without asking
// any Formatter. go vet finds that.
func TestNothingPrintsASecret(t *testing.T) {
	for name, value := range hasSecrets(t) {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			text, asJSON := slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))
			for shape, v := range map[string]any{
				"itself": value, "pointer": &value, "slice": []any{value}, "map": map[string]any{"k": value},
				"struct": struct{ Held any }{value}, "unexported": struct{ held any }{value}, "deep": []map[string]any{{"k": struct{ Held []any }{[]any{value}}}},
			} {
				if shape == "unexported" && notHidden[name] != "" {
					continue
				}
				for _, verb := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnoqrstuvxyz!" {
					for _, flags := range []string{"%", "%+", "%#", "% "} {
						fmt.Fprintf(&out, flags+string(verb)+"\n", v)
					}
				}
				text.Info("m", "v", v, slog.Group("g", "v", v))
				if !forTheApp[name] || shape == "itself" {
					asJSON.Info("m", "v", v, slog.Group("g", "v", v))
				}
				if encoded, err := json.Marshal(v); err == nil && !forTheApp[name] {
					out.Write(encoded)
				}
			}
			wantNoSecret(t, out.String(), []form{asText, asHex, asNumbers, asGo})
		})
	}
}

// A phone chooses its name and its platform, a bridge's app its bundle id, a relay's client the path of a request.
func TestNothingPrintsControlCharacters(t *testing.T) {
	const nasty = "a\x1b]0;title\a\r\nb\u202e\u0085\x7f"
	for _, value := range []any{
		pairing.Device{ID: nasty, Name: nasty, Platform: nasty, Suite: nasty, PushToken: secret.New(nasty)},
		pairing.Request{Name: nasty, Platform: nasty, PushToken: secret.New(nasty)},
		relayclient.Push{Alert: payload.Alert{Kind: nasty}},
		relay.BridgeDevice{Platform: nasty, BundleID: nasty},
		relay.Envelope{CollapseID: nasty, Priority: nasty},
		apns.Message{Header: http.Header{"Apns-Collapse-Id": {nasty}}},
		relaytest.Request{Method: nasty, Path: nasty},
	} {
		text := fmt.Sprint(value)
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%T prints %q", value, text)
		}
	}
}

// wantNoSecret looks for eight bytes of any secret in a text, in each of the forms: asText at least.
func wantNoSecret(t *testing.T, text string, forms []form, more ...string) {
	t.Helper()
	text = lower(text)
	key := phoneKey.Bytes()
	apnsKey, err := ecdsaKey().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range append(more, clientSecret, bearerToken, deviceToken, fcmToken, fleetSalt, relayUser, relayPass,
		relayQuery, agentMessage, string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key),
		string(apnsKey), base64.StdEncoding.EncodeToString(apnsKey), base64.RawURLEncoding.EncodeToString(apnsKey)) {
		const piece = 8
		for i := range max(1, len(word)-piece+1) {
			for _, form := range forms {
				part := lower(form(word[i:min(i+piece, len(word))]))
				if at := strings.Index(text, part); at >= 0 {
					t.Errorf("%q shows in …%s", part, text[max(0, at-200):min(len(text), at+200)])
					return
				}
			}
		}
	}
}

// lower is strings.ToLower for ASCII alone: that one makes one text of all bytes that are no UTF-8, and would find some of
// a private key's in a public one.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// form is a way in which fmt writes the bytes of a string.
type form func(string) string

func asText(s string) string { return s }
func asHex(s string) string  { return hex.EncodeToString([]byte(s)) }
func asNumbers(s string) string {
	return strings.Trim(fmt.Sprint([]byte(s)), "[]")
}
func asGo(s string) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(s)), "[]byte{"), "}")
}

// What a field that holds a secret is called.
var secretName = regexp.MustCompile(`(?i)token|secret|salt|password|credential|private|authorization|query|bearer|key$|^config$|^body$|^header$`)

func TestEveryTypeWithASecretIsWalked(t *testing.T) {
	walked, public := hasSecrets(t), maps.Clone(noSecrets)
	fields := 0
	for name := range secretFields(t) {
		fields++
		typeName, _, _ := strings.Cut(strings.Replace(name, ".", " ", 1), ".")
		typeName = strings.Replace(typeName, " ", ".", 1)
		if _, known := public[name]; known {
			delete(public, name)
			continue
		}
		if _, ok := walked[typeName]; !ok {
			t.Errorf("%s sounds like a secret: add %s to hasSecrets, or the field to noSecrets", name, typeName)
		}
	}
	if fields < 20 {
		t.Errorf("only %d fields found", fields)
	}
	for name := range public {
		t.Errorf("noSecrets: there is no %s", name)
	}
}

// secretFields are the fields, exported or not, of our exported structs that are named like secrets.
func secretFields(t *testing.T) map[string]bool {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (path == "examples" || path == "internal" || path == "testdata" || path == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						public := strings.HasSuffix(name.Name, "URL") || name.Name == "PublicKey"
						if secretName.MatchString(name.Name) && !public {
							found[file.Name.Name+"."+spec.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
			return false
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
