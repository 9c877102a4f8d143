package pairing_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

type webLinkFile struct {
	Cases   []struct{ Comment, Name, Mailbox, Key, Relay, Invitation, Base, JSON, Link string }
	Refused []struct{ Comment, Text, Member string }
}

func loadWebLinks(t testing.TB) webLinkFile {
	t.Helper()
	data, err := os.ReadFile("../../testdata/vectors/web_link.json")
	if err != nil {
		t.Fatal(err)
	}
	var file webLinkFile
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) == 0 || len(file.Refused) == 0 {
		t.Fatalf("%d and %d cases, %v", len(file.Cases), len(file.Refused), err)
	}
	return file
}

func sameWebLink(t *testing.T, got, want pairing.WebLink) {
	t.Helper()
	if got.Name != want.Name || got.Mailbox != want.Mailbox || got.Key != want.Key || got.Relay != want.Relay || !got.Invitation.Equal(want.Invitation) {
		t.Errorf("%+v with invitation %q, want %+v with %q", got, got.Invitation.Reveal(), want, want.Invitation.Reveal())
	}
}

func TestWebLinkVectors(t *testing.T) {
	file := loadWebLinks(t)
	for _, c := range file.Cases {
		t.Run(c.Comment, func(t *testing.T) {
			link := pairing.WebLink{Name: c.Name, Mailbox: c.Mailbox, Relay: c.Relay, Invitation: secret.New(c.Invitation)}
			if c.Key != "" {
				var err error
				if link.Key, err = seal.ParsePublicKey(c.Key); err != nil {
					t.Fatal(err)
				}
			}
			if got := link.JSON(); got != c.JSON {
				t.Errorf("JSON %s, want %s", got, c.JSON)
			}
			scheme, host, _ := strings.Cut(c.Base, "://")
			for _, page := range []string{c.Base, c.Base + "/phone", scheme + "://user:password@" + host + "/relay?x=1#y"} {
				if got, err := link.At(page); err != nil || got != c.Link {
					t.Errorf("at %s: %s, %v; want %s", page, got, err, c.Link)
				}
			}
			_, fragment, _ := strings.Cut(c.Link, "#")
			for _, text := range []string{c.Link, fragment, c.JSON, " \n" + c.Link + "\r\n", fragment + "=="} {
				got, err := pairing.ParseWebLink(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				sameWebLink(t, got, link)
			}
		})
	}
	for _, c := range file.Refused {
		wantLinkError(t, c.Comment, c.Member, func() error {
			got, err := pairing.ParseWebLink(c.Text)
			sameWebLink(t, got, pairing.WebLink{})
			if err != nil && (strings.Contains(err.Error(), "hello") || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%s: the error quotes the link: %v", c.Comment, err)
			}
			return err
		})
	}
}

func TestWebLinksThatCannotBeMade(t *testing.T) {
	right := pairing.WebLink{Name: "n", Mailbox: strings.Repeat("0", 32), Key: seal.GenerateKey().Public()}
	for name, c := range map[string]struct {
		field, page string
		change      func(*pairing.WebLink)
	}{
		"no page":                  {"page URL", "", func(*pairing.WebLink) {}},
		"a page of another scheme": {"page URL", "ftp://page.example", func(*pairing.WebLink) {}},
		"a key of another suite":   {"key", "https://page.example", func(l *pairing.WebLink) { l.Key = seal.XWing.GenerateKey().Public() }},
		"a name that is not UTF-8": {"name", "https://page.example", func(l *pairing.WebLink) { l.Name = "\xff" }},
		"an invitation with a line break": {"invitation", "https://page.example", func(l *pairing.WebLink) {
			l.Invitation = secret.New("a\r\nHost: b")
		}},
		"a key without a mailbox": {"mailbox", "https://page.example", func(l *pairing.WebLink) { l.Mailbox, l.Invitation = "", secret.New("i") }},
		"nothing":                 {"name", "https://page.example", func(l *pairing.WebLink) { *l = pairing.WebLink{} }},
	} {
		link := right
		c.change(&link)
		wantLinkError(t, name, c.field, func() error { _, err := link.At(c.page); return err })
	}
}

// FuzzParseWebLink: what is accepted makes a link that is read the same way.
func FuzzParseWebLink(f *testing.F) {
	file := loadWebLinks(f)
	for _, c := range file.Cases {
		f.Add(c.Link)
		f.Add(c.JSON)
	}
	for _, c := range file.Refused {
		f.Add(c.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		link, err := pairing.ParseWebLink(text)
		if err != nil {
			if _, ok := errors.AsType[*pairing.FieldError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			sameWebLink(t, link, pairing.WebLink{})
			return
		}
		again, err := link.At("https://page.example")
		if tooLong, ok := errors.AsType[*pairing.FieldError](err); ok && tooLong.Field == "link" {
			return // as JSON it was shorter
		}
		if err != nil {
			t.Fatalf("%q was read and cannot be made: %v", text, err)
		}
		got, err := pairing.ParseWebLink(again)
		if err != nil {
			t.Fatal(err)
		}
		sameWebLink(t, got, link)
	})
}
