package answer

import "errors"

// Error is err with its text made a [Line]. Errors of net/http quote what a
// server sent in place of an answer: a status line, a header, a Location, of
// any length. err is returned as it is if that changes nothing.
func Error(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	line := Line(text[:min(len(text), 4*MaxText)], secrets...)
	if line == text {
		return err
	}
	return &scrubbed{line, err}
}

type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// Timeout is for url.Error, which does not unwrap.
func (e *scrubbed) Timeout() bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.err)
	return ok && timeout.Timeout()
}
