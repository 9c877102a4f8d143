package main

import (
	"errors"
	"flag"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// apple says how to reach phones through Apple's push service. Without a key,
// alerts stay in memory.
type apple struct {
	keyFile, team, topic, host string
}

func (a *apple) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&a.keyFile, "apns-key", "", "forward alerts to Apple: the .p8 `file`, under the name that Apple gave it")
	flags.StringVar(&a.team, "apns-team", "", "with -apns-key: the team `id`")
	flags.StringVar(&a.topic, "topic", "", "with -apns-key: the app's bundle `id`")
	flags.StringVar(&a.host, "apns-host", apns.Production, "with -apns-key: base `URL` of the push service; the sandbox is "+apns.Sandbox)
}

func (a *apple) forwards() bool { return a.keyFile != "" }

// options returns what makes a relay forward to Apple, and a function to call
// in the end.
func (a *apple) options() (opts []relaytest.RelayOption, closeForwarder func(), err error) {
	if !a.forwards() {
		if a.team != "" || a.topic != "" {
			return nil, nil, errors.New("-apns-team and -topic need -apns-key")
		}
		return nil, func() {}, nil
	}
	if a.team == "" || a.topic == "" {
		return nil, nil, errors.New("-apns-key needs -apns-team and -topic")
	}
	key, err := apns.LoadKey(a.keyFile, a.team)
	if err != nil {
		return nil, nil, err
	}
	forwarder, err := apns.New(key, a.topic, apns.WithHost(a.host))
	if err != nil {
		return nil, nil, err
	}
	return []relaytest.RelayOption{relaytest.WithRelay(relay.WithForwarder(forwarder)), relaytest.WithHistory(0)}, forwarder.Close, nil
}

// destination says where alerts go.
func (a *apple) destination() string {
	if !a.forwards() {
		return "memory, where phones of this repository fetch them"
	}
	return a.host + ", for " + a.topic
}
