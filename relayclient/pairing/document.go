package pairing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sealpush/sealpush/secret"
)

// document is a registry file in memory. It holds every member of the file as it was read, known to us or not, so that
// a rewrite loses nothing that a newer version or another program put there.
type document struct {
	members map[string]json.RawMessage // of the file, without "devices"
	salt    secret.Text
	records []record
}

// record is one element of "devices": the device, and what it was read from.
type record struct {
	device Device
	raw    json.RawMessage            // what was read, kept as it is when it is not an object
	fields map[string]json.RawMessage // its members; nil when it is not an object
}

func newDocument() *document {
	return &document{members: map[string]json.RawMessage{"version": json.RawMessage("1")}}
}

// parseDocument returns an error for what is not a registry file. A device that cannot be used is no error: it becomes
// a record that says why. A version above 1 is no error as long as the members that we know have the types that we
// know.
func parseDocument(data []byte) (*document, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	doc := new(document)
	if err := json.Unmarshal(data, &doc.members); err != nil {
		return nil, err
	}
	version := 1
	if err := decodeMember(doc.members, "version", &version); err != nil {
		return nil, err
	}
	if version < 1 {
		return nil, fmt.Errorf("version is %d", version)
	}
	var salt string
	if err := decodeMember(doc.members, "collapseSalt", &salt); err != nil {
		return nil, err
	}
	doc.salt = secret.New(salt)
	var devices []json.RawMessage
	if err := decodeMember(doc.members, "devices", &devices); err != nil {
		return nil, err
	}
	if devices == nil {
		return nil, errors.New(`no list of devices: not a registry file`)
	}
	delete(doc.members, "devices")
	for i, raw := range devices {
		rec := parseRecord(raw)
		if rec.device.Unusable != nil {
			rec.device.Unusable = fmt.Errorf("device %d (id %q): %w", i, rec.device.ID, rec.device.Unusable)
		}
		doc.records = append(doc.records, rec)
	}
	return doc, nil
}

// parseRecord reads as much of a device as it can: one whose push token is missing can still be revoked by its id.
func parseRecord(raw json.RawMessage) record {
	rec := record{raw: raw}
	if err := json.Unmarshal(raw, &rec.fields); err != nil || rec.fields == nil {
		rec.device.Unusable = errors.New("not a JSON object")
		return rec
	}
	d := &rec.device
	var key, suite, token, created, updated string
	var errs []error
	for _, f := range []struct {
		name  string
		value *string
	}{
		{"id", &d.ID}, {"name", &d.Name}, {"platform", &d.Platform}, {"pushToken", &token},
		{"publicKey", &key}, {"suite", &suite},
	} {
		errs = append(errs, decodeMember(rec.fields, f.name, f.value))
	}
	// Errors in these four are ignored: they are no reason not to page the phone, and pairing it again would not change
	// the first two.
	_ = decodeMember(rec.fields, "createdAt", &created)
	_ = decodeMember(rec.fields, "createdBy", &d.CreatedBy)
	_ = decodeMember(rec.fields, "updatedAt", &updated)
	_ = decodeMember(rec.fields, "updatedBy", &d.UpdatedBy)
	d.PushToken = secret.New(token)
	d.CreatedAt, d.UpdatedAt = parseTime(created), parseTime(updated)
	d.ReadKey(suite, key)
	d.Unusable = errors.Join(append(errs, d.Unusable)...)
	return rec
}

// decodeMember decodes one member into v and leaves v alone when the member is absent or null. Its error names the
// member and the type that was found, never the value, which may be a secret.
func decodeMember(members map[string]json.RawMessage, name string, v any) error {
	raw, ok := members[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s is of the wrong type, want %s", name, e.Type)
		}
		return fmt.Errorf("%s cannot be decoded", name)
	}
	return nil
}

func (doc *document) setSalt(salt secret.Text) {
	doc.salt = salt
	doc.members["collapseSalt"] = encode(salt.Reveal())
}

// put stores a device: in place of the one with its key, or after the others. It returns what is now stored.
func (doc *document) put(d Device) (stored Device, created bool) {
	key := d.PublicKey.String()
	i := slices.IndexFunc(doc.records, func(r record) bool { return r.fields != nil && r.device.key() == key })
	if i < 0 {
		i, created = len(doc.records), true
		doc.records = append(doc.records, record{device: d, fields: map[string]json.RawMessage{
			"publicKey": encode(key),
			"createdAt": encode(formatTime(d.CreatedAt)),
			"createdBy": encode(nullable(d.CreatedBy)),
		}})
	}
	rec := &doc.records[i]
	rec.device.Name, rec.device.Platform, rec.device.PushToken = d.Name, d.Platform, d.PushToken
	rec.device.Suite, rec.device.PublicKey, rec.device.StoredKey = d.PublicKey.Suite(), d.PublicKey, ""
	rec.device.Unusable = nil
	if rec.device.ID == "" {
		rec.device.ID = d.ID
	}
	rec.fields["id"] = encode(rec.device.ID)
	rec.fields["name"] = encode(d.Name)
	rec.fields["platform"] = encode(d.Platform)
	rec.fields["pushToken"] = encode(d.PushToken.Reveal())
	rec.fields["suite"] = encode(string(d.PublicKey.Suite()))
	if !d.UpdatedAt.IsZero() {
		rec.device.UpdatedAt, rec.device.UpdatedBy = d.UpdatedAt, d.UpdatedBy
		rec.fields["updatedAt"] = encode(formatTime(d.UpdatedAt))
		rec.fields["updatedBy"] = encode(nullable(d.UpdatedBy))
	}
	return rec.device, created
}

// remove takes out every device with this id and reports whether there was one.
func (doc *document) remove(id string) bool {
	n := len(doc.records)
	doc.records = slices.DeleteFunc(doc.records, func(r record) bool { return r.device.ID == id })
	return len(doc.records) < n
}

// bytes is the document as the deployed daemon would write it: json.dumps(…, indent=2, sort_keys=True), in ASCII and
// without a final newline.
func (doc *document) bytes() ([]byte, error) {
	devices := make([]any, len(doc.records))
	for i, r := range doc.records {
		if r.fields == nil {
			devices[i] = r.raw
		} else {
			devices[i] = r.fields
		}
	}
	all := make(map[string]any, len(doc.members)+1)
	for name, raw := range maps.All(doc.members) {
		all[name] = raw
	}
	all["devices"] = devices

	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		return nil, err
	}
	return escapeNonASCII(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

// encode is the JSON of a string, or of null for a nil *string.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // a string always encodes, and a Buffer always takes it
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// escapeNonASCII writes every character outside U+0020 to U+007E as \uxxxx, or as two of them above U+FFFF. In valid
// JSON such characters only stand inside strings; the newlines that indent it stay.
func escapeNonASCII(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for _, r := range string(doc) {
		switch {
		case r <= '~':
			out = append(out, byte(r))
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}
