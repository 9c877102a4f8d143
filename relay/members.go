package relay

import (
	"bytes"
	"encoding/json"
	"slices"
)

// members are the known members of a JSON object, each as it was written.
// encoding/json into a struct would not do: it takes "Device" for "device", and
// null for an absent value.
type members struct {
	raw map[string]json.RawMessage
	err error // the first thing that was wrong; later reads return zero values
}

// splitMembers reads body, which must be one JSON object and nothing after it.
func splitMembers(body []byte, known ...string) *members {
	m := &members{raw: make(map[string]json.RawMessage, len(known))}
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark
	if !json.Valid(body) {
		m.fail("body", "must be one JSON object")
		return m
	}
	dec := json.NewDecoder(bytes.NewReader(body)) // cannot fail on valid JSON
	if start, _ := dec.Token(); start != json.Delim('{') {
		m.fail("body", "must be one JSON object")
		return m
	}
	for dec.More() {
		token, _ := dec.Token()
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			m.fail("body", "must be one JSON object")
			return m
		}
		name, _ := token.(string)
		if !slices.Contains(known, name) {
			continue
		}
		m.raw[name] = value
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
	var s *string
	if err := json.Unmarshal(m.get(field), &s); err != nil || s == nil {
		m.fail(field, "must be a string")
		return ""
	}
	if problem := check(*s); problem != "" {
		m.fail(field, problem)
	}
	return *s
}

func (m *members) boolean(field string) bool {
	var b *bool
	if err := json.Unmarshal(m.get(field), &b); err != nil || b == nil {
		m.fail(field, "must be true or false")
		return false
	}
	return *b
}
