package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// maxAnswer is what the phone reads of an answer, in bytes: a hundred messages of 4 KiB and room to spare.
const maxAnswer = 1 << 20

// paired is the daemon's answer to a pairing.
type paired struct {
	Device struct {
		ID          string `json:"id"`
		Fingerprint string `json:"fingerprint"`
	} `json:"device"`
	Created bool `json:"created"`
}

// pairWith hands the phone's public key and push token to the daemon.
func pairWith(ctx context.Context, client *http.Client, daemon, token, name string, phone *relaytest.Phone) (paired, error) {
	body, err := json.Marshal(map[string]string{
		"name": name, "platform": "example", "publicKey": phone.PublicKey().String(), "pushToken": phone.PushToken(),
	})
	if err != nil {
		return paired{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, daemon+"/push/devices", bytes.NewReader(body))
	if err != nil {
		return paired{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	var answer paired
	err = call(client, req, &answer)
	if refused, ok := errors.AsType[*statusError](err); ok && refused.status == http.StatusUnauthorized {
		return paired{}, fmt.Errorf("the daemon does not know this token (%w): pass one of its tokens with -token or $SEALPUSH_PHONE_TOKEN", err)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return paired{}, fmt.Errorf("%w: is the daemon running?", err)
	}
	if err != nil {
		return paired{}, err
	}
	if want := phone.PublicKey().Fingerprint(); answer.Device.Fingerprint != want {
		return paired{}, fmt.Errorf("the daemon has fingerprint %q where this phone's is %s: somebody in between has put in a key of theirs",
			answer.Device.Fingerprint, want)
	}
	return answer, nil
}

// A statusError is an answer other than 2xx.
type statusError struct {
	status int
	text   string // what the answer says is wrong, to be shown
}

func (e *statusError) Error() string {
	return fmt.Sprintf("answered %d %s: %s", e.status, http.StatusText(e.status), e.text)
}

// call decodes the answer to a request into v.
func call(client *http.Client, req *http.Request, v any) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		var said struct{ Error string }
		if json.Unmarshal(body, &said) != nil {
			said.Error = "not an answer of ours"
		}
		return &statusError{resp.StatusCode, printable(said.Error)}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s answered something else than JSON: %w", req.URL.Host, err)
	}
	return nil
}
