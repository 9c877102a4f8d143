// A node of the version before suites, for TestFleetOfVersions. It is built inside a checkout of that version, so it
// uses the API of then.
package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve prints its URL and serves the pairing API, POST /alert?name= and GET /log until standard input ends.
func serve() error {
	var config struct{ File, DSN, Relay string }
	if err := json.Unmarshal([]byte(os.Getenv("SEALPUSH_TEST_NODE")), &config); err != nil {
		return err
	}
	store, err := openStore(config.File, config.DSN)
	if err != nil {
		return err
	}
	log := &logBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	registry := pairing.NewRegistry(store, pairing.WithLogger(logger))
	client, err := relayclient.New(config.Relay, relayclient.WithLogger(logger))
	if err != nil {
		return err
	}
	notifier, err := relayclient.NewNotifier(client, registry, "node")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/push/", pairing.Handler(registry, notifier.TestStatus))
	mux.HandleFunc("POST /alert", func(w http.ResponseWriter, r *http.Request) {
		var err error
		for _, o := range notifier.Notify(r.Context(), payload.NewFailure("node", r.FormValue("name"))) {
			err = errors.Join(err, o.Err)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, log.take()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, mux)
}

func openStore(file, dsn string) (pairing.Store, error) {
	if file != "" {
		return pairing.OpenFile(file)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return pairing.NewSQL(db, pairing.PostgreSQL)
}

// A logBuffer keeps log lines until they are taken.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}
