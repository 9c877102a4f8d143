package relay

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// members are those of a JSON object, each as it was written; of two of one name, the last. encoding/json into a struct
// would not do: it takes "Device" for "device", and null for an absent value.
type members struct {
	raw map[string]json.RawMessage
	err error // the first thing that was wrong; later reads return zero values
}

// splitMembers reads body, which must be one JSON object and nothing after it.
func splitMembers(body []byte) *members {
	m := &members{}
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark
	if err := json.Unmarshal(body, &m.raw); err != nil || m.raw == nil {
		m.fail("body", "must be one JSON object")
	}
	return m
}

func (m *members) fail(field, problem string) {
	if m.err == nil {
		m.err = &fieldError{field, problem}
	}
}

func (m *members) get(field string) json.RawMessage {
	value, ok := m.raw[field]
	if !ok {
		m.fail(field, "is missing")
	}
	return value
}

func (m *members) has(field string) bool {
	_, ok := m.raw[field]
	return ok
}

// one reads a member that is the number 1, which may be written as 1.0 or 1e0.
func (m *members) one(field string) {
	var n *float64
	if err := json.Unmarshal(m.get(field), &n); err != nil || n == nil || *n != 1 {
		m.fail(field, "must be the number 1")
	}
}

// text reads a string; check returns what is wrong with it, or "".
func (m *members) text(field string, check func(string) string) string {
	s, ok := unquote(m.get(field))
	if !ok {
		m.fail(field, "must be a string")
		return ""
	}
	if problem := check(s); problem != "" {
		m.fail(field, problem)
	}
	return s
}

// unquote reads a JSON string, most often one that stands for itself.
func unquote(raw json.RawMessage) (string, bool) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

func (m *members) boolean(field string) bool {
	var b *bool
	if err := json.Unmarshal(m.get(field), &b); err != nil || b == nil {
		m.fail(field, "must be true or false")
		return false
	}
	return *b
}
