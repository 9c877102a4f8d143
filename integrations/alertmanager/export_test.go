package alertmanager

import "github.com/sealpush/sealpush/payload"

// PageOf is what a handler with default rules makes of a payload.
func PageOf(body []byte) (payload.Alert, error) {
	c, err := newConfig([]Option{WithoutAuth()})
	if err != nil {
		panic(err)
	}
	g, err := parseGroup(body)
	if err != nil {
		return payload.Alert{}, err
	}
	alert, err := c.page(g)
	if err != nil {
		panic(err)
	}
	alert.RunID = new(runs).of(g)
	return alert, nil
}
