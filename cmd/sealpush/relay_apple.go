package main

import (
	"flag"

	"github.com/sealpush/sealpush/relay/apns"
)

// apple says how to reach phones through Apple's push service. Without a key, alerts stay in memory.
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

// forwarder is nil without a key.
func (a *apple) forwarder() (*apns.Forwarder, error) {
	if !a.forwards() {
		if a.team != "" || a.topic != "" {
			return nil, usagef("-apns-team and -topic need -apns-key")
		}
		return nil, nil
	}
	if a.team == "" || a.topic == "" {
		return nil, usagef("-apns-key needs -apns-team and -topic")
	}
	key, err := apns.LoadKey(a.keyFile, a.team)
	if err != nil {
		return nil, err
	}
	return apns.New(key, a.topic, apns.WithHost(a.host))
}

// destination says where alerts go.
func (a *apple) destination() string {
	if !a.forwards() {
		return "memory, where phones of this repository fetch them"
	}
	return a.host + ", for " + a.topic
}
