package relayclient

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A Push is one alert on its way to any number of devices. It prints, logs and encodes to JSON without its salt and
// what its alert says.
type Push struct {
	// Alert is fitted to what a ciphertext to each device holds, see WithMaxCiphertext; the caller's stays as it is.
	Alert payload.Alert
	// Salt is the installation's secret, from payload.NewSalt, with which the collapse id is derived. Every node must
	// use the same one.
	Salt secret.Text
	// CollapseID, 32 lower-case hex digits, takes the place of the derived id. Test alerts without one get a fresh
	// random id.
	CollapseID string
	// Priority is TimeSensitive unless set.
	Priority Priority
}

// Priority is how loudly the phone is paged.
type Priority int

// The priorities of the relay protocol.
const (
	// TimeSensitive breaks through scheduled summaries and makes a sound.
	TimeSensitive Priority = iota
	// Passive waits quietly in the notification list.
	Passive
)

// String returns the priority as the protocol writes it.
func (p Priority) String() string {
	switch p {
	case TimeSensitive:
		return "time-sensitive"
	case Passive:
		return "passive"
	}
	return fmt.Sprintf("Priority(%d)", int(p))
}

// envelopeRoom is enough for the members of an envelope besides the push token and the ciphertext, in bytes.
const envelopeRoom = 160

// maxPushToken bounds a push token, in bytes. Package pairing takes none of more than 512 characters, and no relay an
// envelope of twice this size.
const maxPushToken = 4096

// message is what the envelopes of one push have in common.
type message struct {
	alert      payload.Alert // which the log names
	collapseID string
	priority   string
	event      bool
	suites     []seal.Suite // of the devices
	limit      int          // how many characters of ciphertext the relay is trusted to take
	fits       fits         // to the budgets of all suites, at the limit and at the floor
	sending    *sending     // has the connections; nil with WithHTTPClient
}

func newMessage(push Push, devices []pairing.Device, limit int) (message, error) {
	if push.Priority != TimeSensitive && push.Priority != Passive {
		return message{}, fmt.Errorf("%w: %v: use TimeSensitive or Passive", ErrInvalidAlert, push.Priority)
	}
	m := message{
		alert:    push.Alert,
		priority: push.Priority.String(),
		event:    push.Alert.Kind == payload.KindEvent,
		suites:   suitesOf(devices),
		limit:    limit,
		fits:     fits{},
	}
	var problem error
	failed := 0
	for _, suite := range m.suites {
		m.fits.prepare(push.Alert, suite, limit)
		m.fits.prepare(push.Alert, suite, ciphertextFloor)
		if _, err := m.fits.to(suite, limit); err != nil {
			problem = err
			failed++
		}
	}
	if failed == len(m.suites) {
		return message{}, fmt.Errorf("%w: %w", ErrInvalidAlert, problem)
	}
	var err error
	m.collapseID, err = collapseID(push)
	return m, err
}

// collapseID derives the id from the alert before fitting, as every other node does, so that devices and nodes with
// different budgets have one id.
func collapseID(push Push) (string, error) {
	switch {
	case push.CollapseID != "":
		if len(push.CollapseID) != 32 || strings.Trim(push.CollapseID, "0123456789abcdef") != "" {
			return "", fmt.Errorf("%w: Push.CollapseID must be 32 lower-case hex digits; leave it empty to derive it", ErrInvalidAlert)
		}
		return push.CollapseID, nil
	case push.Alert.Kind == payload.KindTest:
		return payload.NewCollapseID(), nil
	case push.Salt.IsZero():
		// Without a salt the relay could look job names up in a word list.
		return "", fmt.Errorf("%w: Push.Salt is empty; make one with payload.NewSalt once and keep it beside the devices", ErrInvalidAlert)
	}
	return push.Alert.CollapseID(push.Salt), nil
}

// envelopeFor seals the plaintext to a device and returns the body of its POST (relay protocol, "Inbound request").
// Only the push token can hold what JSON must escape; encoding/json would search the ciphertext for it and copy it.
func (m message) envelopeFor(device pairing.Device, plaintext []byte) ([]byte, error) {
	pushToken := device.PushToken.Reveal()
	if pushToken == "" || len(pushToken) > maxPushToken || !utf8.ValidString(pushToken) {
		return nil, fmt.Errorf("%w: its push token is empty, too long or not text; pair the phone again", ErrUnusableDevice)
	}
	token, err := json.Marshal(pushToken)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusableDevice, err)
	}
	body := make([]byte, 0, len(token)+m.limit+envelopeRoom)
	body = append(body, `{"v":1,"device":`...)
	body = append(body, token...)
	body = append(body, `,"suite":"`...)
	body = append(body, device.PublicKey.Suite()...)
	body = append(body, `","ciphertext":"`...)
	body, err = seal.AppendSeal(body, device.PublicKey, plaintext)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusableDevice, err)
	}
	body = append(body, `","collapseId":"`...)
	body = append(body, m.collapseID...)
	body = append(body, `","priority":"`...)
	body = append(body, m.priority...)
	body = append(body, `","event":`...)
	body = strconv.AppendBool(body, m.event)
	return append(body, '}'), nil
}
