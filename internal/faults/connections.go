package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// connectionFaults are about connections that there are.
func connectionFaults() []fault {
	return []fault{{
		name: "bad-connection", wanted: "at least 20 of 25",
		what: "25 alerts, one each 200 ms, timeout 500 ms; the first HTTP/2 connection answers pings and no request",
		run: func() (string, bool, error) {
			return pastBadConnection(func(client *relayclient.Client) int {
				return sendOften(client, 25, 200*time.Millisecond, 1)
			}, 20, 25)
		},
	}, {
		name: "bad-connection-300", wanted: "200 of 300",
		what: "one alert to 300 phones, past the same connection",
		run: func() (string, bool, error) {
			return pastBadConnection(func(client *relayclient.Client) int { return send(client, 300) }, 200, 300)
		},
	}, {
		name: "thousand-phones", wanted: "1000 of 1000, on at most 100 connections",
		what: "one alert to 1000 phones, HTTP/1.1 over TLS, handshakes of 40 ms",
		run: func() (string, bool, error) {
			got, most, took, err := toThousand(1)
			return fmt.Sprintf("%s, %d connections, in %v", of(got, 1000), most, took), got == 1000 && most <= 100, err
		},
	}, {
		name: "thousand-phones-twice", wanted: "2000 of 2000, on at most 200 connections",
		what: "two such alerts at the same time",
		run: func() (string, bool, error) {
			got, most, took, err := toThousand(2)
			return fmt.Sprintf("%s, %d connections, in %v", of(got, 2000), most, took), got == 2000 && most <= 200, err
		},
	}, {
		name: "idle-end", wanted: "800 of 800",
		what: "alerts to 100 phones, 2 s ± 2 ms apart, by a relay that closes idle connections after 2 s",
		run:  atIdleEnd,
	}, {
		name: "second-alert", wanted: "0 and 0 connections",
		what: "a second alert to 100 phones half a second after the first, over HTTP/1.1 and HTTP/2 with TLS",
		run: func() (string, bool, error) {
			h1, err1 := forSecondAlert("https1")
			h2, err2 := forSecondAlert("https2")
			if err1 != nil {
				err2 = err1
			}
			return fmt.Sprintf("%d and %d", h1, h2), h1 == 0 && h2 == 0, err2
		},
	}, {
		name: "restart", wanted: "no page lost of the alerts that began after it",
		what: "the relay restarts while alerts to 50 phones are sent, one each 100 ms, over HTTP/1.1 and HTTP/2",
		run: func() (string, bool, error) {
			lost1, err1 := pastRestart("http")
			lost2, err2 := pastRestart("https2")
			if err1 != nil {
				err2 = err1
			}
			return fmt.Sprintf("%d and %d lost", lost1, lost2), lost1+lost2 == 0, err2
		},
	}}
}

func pastBadConnection(sendAll func(*relayclient.Client) int, least, all int) (string, bool, error) {
	s := serve("https2", func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(connectionNumber{}) == 0 {
			<-r.Context().Done()
			return
		}
		accept(0)(w, r)
	}, nil)
	defer s.Close()
	client, err := relayclient.New(s.URL, relayclient.WithTimeout(500*time.Millisecond))
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	got := sendAll(client)
	return of(got, all), got >= least, nil
}

func toThousand(alerts int) (delivered, mostOpen int, took time.Duration, err error) {
	s := serve("https1", accept(5*time.Millisecond), slowHandshakes(40*time.Millisecond))
	defer s.Close()
	client, err := relayclient.New(s.URL)
	if err != nil {
		return 0, 0, 0, err
	}
	defer client.Close()
	start := time.Now()
	results := make(chan int)
	for range alerts {
		go func() { results <- send(client, 1000) }()
	}
	for range alerts {
		delivered += <-results
	}
	_, mostOpen = s.connections()
	return delivered, mostOpen, time.Since(start).Round(10 * time.Millisecond), nil
}

func atIdleEnd() (string, bool, error) {
	delivered := 0
	var mu sync.Mutex
	var relays sync.WaitGroup
	var failed error
	for offset := -4; offset < 4; offset++ { // in half milliseconds, each with a relay and a client of its own
		relays.Go(func() {
			s := serve("http", accept(time.Millisecond), func(s *server) { s.Config.IdleTimeout = 2 * time.Second })
			defer s.Close()
			client, err := relayclient.New(s.URL)
			if err != nil {
				failed = err
				return
			}
			defer client.Close()
			send(client, 100)
			time.Sleep(2*time.Second + time.Duration(offset)*time.Millisecond/2)
			got := send(client, 100)
			mu.Lock()
			defer mu.Unlock()
			delivered += got
		})
		time.Sleep(300 * time.Millisecond) // the moments of the others
	}
	relays.Wait()
	return of(delivered, 800), delivered == 800, failed
}

func forSecondAlert(protocol string) (opened int, err error) {
	s := serve(protocol, accept(300*time.Millisecond), nil)
	defer s.Close()
	client, err := relayclient.New(s.URL)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	send(client, 100)
	time.Sleep(500 * time.Millisecond)
	before, _ := s.connections()
	if got := send(client, 100); got != 100 {
		return 0, fmt.Errorf("the second alert reached %d of 100", got)
	}
	after, _ := s.connections()
	return after - before, nil
}

func pastRestart(protocol string) (lost int, err error) {
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(5 * time.Millisecond)
		w.WriteHeader(http.StatusAccepted)
	}
	s, err := serveAt(address, protocol, handler)
	if err != nil {
		return 0, err
	}
	client, err := relayclient.New(s.URL)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	during := make(chan int)
	go func() { during <- sendOften(client, 20, 100*time.Millisecond, 50) }()
	time.Sleep(time.Second)
	s.CloseClientConnections()
	s.Close()
	if s, err = serveAt(address, protocol, handler); err != nil {
		return 0, err
	}
	defer s.Close()
	after := sendOften(client, 20, 100*time.Millisecond, 50)
	<-during
	return 20*50 - after, nil
}
