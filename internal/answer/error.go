package answer

import (
	"errors"
	"slices"
)

// Error is err with its text made a [Line]. Errors of net/http quote what a server sent in place of an answer: a status
// line, a header, a Location, of any length; and a caller's own transport may quote the request.
//
// No error that errors.Unwrap, errors.Is or errors.As finds in it quotes a secret either: of the errors within err it
// wraps those that are free of secrets and of what does not print. err is returned as it is if that changes nothing.
func Error(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	line := Line(text[:min(len(text), 4*MaxText)], secrets...)
	if line == text && clean(err, secrets) {
		return err
	}
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return &scrubbed{text: line, causes: cleanCauses(err, secrets), timeout: ok && timeout.Timeout()}
}

type scrubbed struct {
	text    string
	causes  []error
	timeout bool
}

func (e *scrubbed) Error() string   { return e.text }
func (e *scrubbed) Unwrap() []error { return e.causes }

// Timeout is for url.Error, which does not unwrap.
func (e *scrubbed) Timeout() bool { return e.timeout }

// cleanCauses returns the topmost of the errors in err's tree that are clean.
func cleanCauses(err error, secrets []string) []error {
	if clean(err, secrets) {
		return []error{err}
	}
	var causes []error
	for _, cause := range wrapped(err) {
		causes = append(causes, cleanCauses(cause, secrets)...)
	}
	return causes
}

// clean says whether neither err nor any error that it wraps has a text to be redacted.
func clean(err error, secrets []string) bool {
	const most = 64 << 10 // bytes that are searched; a longer text may say anything
	text := err.Error()
	if len(text) > most || redact(printable(text), len(text), secrets) != text {
		return false
	}
	return !slices.ContainsFunc(wrapped(err), func(cause error) bool { return !clean(cause, secrets) })
}

// wrapped returns the errors that err wraps itself.
func wrapped(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return slices.DeleteFunc(slices.Clone(e.Unwrap()), func(cause error) bool { return cause == nil })
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	}
	return nil
}
