package relay

import (
	"errors"
	"net/http"
	"time"
)

// An Observation is what became of a post, or of a forward to the push service, for metrics. It holds nothing of an
// envelope and nothing that says which device it was for.
type Observation struct {
	// Operation is "post" for a POST that was answered, "forward" for an alert that was handed to the push service, and
	// "digest" for a digest.
	Operation string
	// Result is one of a fixed set of words, fit for a metric's label. Of a post, see [PostResults]:
	//
	//	forwarded      the push service has taken it
	//	coalesced      it is a copy of one that was just forwarded
	//	suppressed     its collapse id flaps
	//	digested       the device's quota is used up
	//	rate_limited   the device's bucket is empty, or the push service says so: 429
	//	device_gone    the push service does not know the device any more: 410
	//	not_forwarded  the push service did not take it, or the relay was closed meanwhile: 502
	//	invalid        the envelope is not right, or did not arrive: 400, 408, 413
	//	unavailable    the relay serves as many devices as it can, or is closed: 503
	//
	// Of a forward and a digest it is "forwarded", "rate_limited", "device_gone" or "not_forwarded".
	Result string
	// Status is the HTTP status of the answer to a post, or which one a failed forward leads to. It is 202 for one that did
	// not fail.
	Status int
	// Start is when the body of a post began to be read, or a forward began, and Duration how long it took.
	Start    time.Time
	Duration time.Duration
}

// PostResults are the words that the [Observation] of a post may have as its Result.
func PostResults() []string {
	return []string{"forwarded", "coalesced", "suppressed", "digested", "rate_limited", "device_gone", "not_forwarded", "invalid", "unavailable"}
}

// WithObserver calls observe with each [Observation]. Calls come from several goroutines at once, and an answer waits for
// them, so observe has to be quick. A panic of it is dropped. What is posted to another path than "/", or not posted at
// all, is not observed.
func WithObserver(observe func(Observation)) Option {
	return func(c *config) error {
		if observe == nil {
			return errors.New("relay: WithObserver: the function is nil")
		}
		c.observer = observe
		return nil
	}
}

// observedNow is the time if there is an observer.
func (c *config) observedNow() (now time.Time) {
	if c.observer != nil {
		now = time.Now()
	}
	return now
}

// observe tells the observer, if there is one.
func (c *config) observe(operation, result string, status int, start time.Time) {
	if c.observer == nil {
		return
	}
	defer func() { recover() }()
	c.observer(Observation{Operation: operation, Result: result, Status: status, Start: start, Duration: time.Since(start)})
}

// observeForward tells of a forward or a digest that ended with err.
func (c *config) observeForward(operation string, err error, start time.Time) {
	status := http.StatusAccepted
	if err != nil {
		status = http.StatusBadGateway
	}
	if failure, ok := errors.AsType[*ForwardError](err); ok {
		status = failure.status()
	}
	c.observe(operation, resultOfForward(status), status, start)
}

func (r *reply) result() string {
	if r.Outcome != "" {
		return string(r.Outcome)
	}
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		return "invalid"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	return resultOfForward(r.status)
}

func resultOfForward(status int) string {
	switch status {
	case http.StatusAccepted:
		return "forwarded"
	case http.StatusTooManyRequests:
		return "rate_limited"
	case http.StatusGone:
		return "device_gone"
	}
	return "not_forwarded"
}
