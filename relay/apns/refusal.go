package apns

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay"
)

// maxAnswer is how much of an answer is read, in bytes; Apple's take some 60.
const maxAnswer = 4096

// refusal says what an answer other than 200 means for the daemon ("Handling notification responses from APNs" in
// Apple's documentation).
func refusal(resp *http.Response, body []byte) *relay.ForwardError {
	var answer struct {
		Reason string `json:"reason"`
	}
	json.Unmarshal(body, &answer) // without a reason, the status has to do
	failure := &relay.ForwardError{
		Status: http.StatusBadGateway,
		Reason: wordOf(answer.Reason),
		Err:    errors.New("apns: the push service answered " + strconv.Itoa(resp.StatusCode)),
	}
	switch answer.Reason {
	case "Unregistered", "ExpiredToken", "BadDeviceToken", "DeviceTokenNotForTopic":
		failure.Status = http.StatusGone
	case "TooManyProviderTokenUpdates":
		// A 429 that is about the relay, not about the device.
	default:
		if resp.StatusCode == http.StatusTooManyRequests {
			failure.Status = resp.StatusCode
			if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
				failure.RetryAfter = time.Duration(seconds) * time.Second
			}
		}
	}
	return failure
}

// wordOf returns a reason if it is a word, as Apple's are: nothing else gets into answers and logs.
func wordOf(reason string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(reason) > 64 || strings.Trim(reason, letters) != "" {
		return ""
	}
	return reason
}
