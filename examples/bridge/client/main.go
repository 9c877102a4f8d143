// Client is a phone for the bridge, in a terminal. It pairs with the URL that the bridge prints, and connects:
//
//	go run -C examples/bridge ./client 'PAIRING_URL'
//
// Each line that is typed goes to the agent, as the text of a JSON-RPC notification unless it is JSON itself, and each
// message of the agent is a line on standard output. An empty line closes the connection, as a phone does when its app
// is in the background: the agent's messages wake the phone now. The next empty line connects again and fetches what
// was kept. Control-C ends it.
//
// If the bridge has a push relay, a made-up device token is registered with it. No phone rings for it; sealpush relay
// shows what would have been sent.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/coder/websocket"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: client PAIRING_URL, which the bridge prints")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pairingURL string) error {
	address, fingerprint, pinned := strings.Cut(pairingURL, "#")
	client := http.DefaultClient
	if pinned {
		client = &http.Client{Transport: &http.Transport{TLSClientConfig: pin(fingerprint)}}
	}
	paired, err := pair(client, address)
	if err != nil {
		return fmt.Errorf("not paired: %w", err)
	}
	typed := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			typed <- in.Text()
		}
	}()
	deviceToken := fmt.Sprintf("%x", sha256.Sum256([]byte(rand.Text())))
	for {
		conn, _, err := websocket.Dial(ctx, paired.URL, &websocket.DialOptions{
			HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + paired.AuthToken.Reveal()}},
		})
		if err != nil {
			return err
		}
		if paired.PushRelayURL != "" {
			err = send(ctx, conn, `{"method":"bridge/registerPushToken","params":{"deviceToken":"`+deviceToken+`","platform":"apns","bundleId":"com.example.app"}}`)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "Connected to %s. An empty line disconnects.\n", paired.URL)
		if again, err := talk(ctx, conn, typed); !again {
			return err
		}
		fmt.Fprintln(os.Stderr, "Disconnected. An empty line connects again.")
		for <-typed != "" {
		}
	}
}

// pair redeems the code in the address.
func pair(client *http.Client, address string) (paired bridge.PairingResponse, err error) {
	resp, err := client.Get(address)
	if cause, ok := errors.AsType[*url.Error](err); ok {
		return paired, cause.Err // without the code
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the bridge answers %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err != nil {
		return paired, err
	}
	return paired, json.Unmarshal(body, &paired)
}

// pin trusts one certificate, which the bridge made itself.
func pin(fingerprint string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		hash := sha256.Sum256(state.PeerCertificates[0].Raw)
		if "SHA256:"+strings.ReplaceAll(fmt.Sprintf("% X", hash[:]), " ", ":") != fingerprint {
			return errors.New("the bridge's certificate is not the one of the pairing URL")
		}
		return nil
	}}
}

// talk returns when the connection ends, and says whether the user means to come back.
func talk(ctx context.Context, conn *websocket.Conn, typed <-chan string) (again bool, err error) {
	defer conn.CloseNow()
	conn.SetReadLimit(-1) // the bridge bounds what its agent says
	ended := make(chan error, 1)
	go func() {
		for {
			_, message, err := conn.Read(ctx)
			if err != nil {
				ended <- err
				return
			}
			fmt.Printf("%s\n", message)
		}
	}()
	for {
		select {
		case line := <-typed:
			if line == "" {
				return true, conn.Close(websocket.StatusNormalClosure, "")
			}
			if err := send(ctx, conn, jsonRPC(line)); err != nil {
				return false, err
			}
		case err := <-ended:
			if closed, ok := errors.AsType[websocket.CloseError](err); ok && closed.Code == websocket.StatusNormalClosure {
				fmt.Fprintln(os.Stderr, "The bridge says:", closed.Reason)
				return false, nil
			}
			return false, err
		}
	}
}

// jsonRPC returns what was typed as a message for the agent.
func jsonRPC(typed string) string {
	if json.Valid([]byte(typed)) {
		return typed
	}
	text, _ := json.Marshal(typed)
	return `{"jsonrpc":"2.0","method":"say","params":{"text":` + string(text) + `}}`
}

func send(ctx context.Context, conn *websocket.Conn, message string) error {
	return conn.Write(ctx, websocket.MessageText, []byte(message))
}
