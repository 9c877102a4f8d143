package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/sealpush/sealpush/internal/input"
	"github.com/sealpush/sealpush/internal/regular"
	"github.com/sealpush/sealpush/secret"
)

// Config is the [push_relay] table of a bridge's common.toml. Push is enabled when all four fields are set.
//
// White space, line ends and a byte order mark around a value are dropped, as they come with a file or a copied text.
// White space, control characters and what is not UTF-8 inside one are refused, by [LoadConfig] and [New].
//
// To read a Config as a part of a larger configuration, give the field the tag `toml:"push_relay"`; [LoadConfig] is
// stricter about misspelt keys.
type Config struct {
	URL          string      `toml:"url"`           // base URL of the push relay
	TokenURL     string      `toml:"token_url"`     // base URL of the token service
	ClientID     string      `toml:"client_id"`     // who this bridge is; also the debounce key
	ClientSecret secret.Text `toml:"client_secret"` // shown once, when the client was created

	lookalikes []string // names in the file that are nearly ours and were not read
}

// ConfigError says what is wrong with a configuration file, and where.
type ConfigError struct {
	Path string // as given to LoadConfig
	Line int    // from 1; 0 when it is not known
	Err  error
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("bridge: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("bridge: %s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

const maxConfig = 1 << 20 // bytes of a configuration file

// LoadConfig reads the [push_relay] table of the TOML file at path. Other tables are the caller's and not looked at.
//
// A name in the file that is nearly one of ours, such as [push-relay], or client_id before the table, is not an error;
// [New] logs it at Warn.
//
// An absent table or an absent or empty field is no error: push is disabled then, see [Config.Enabled]. A file that is
// not TOML, an unknown (misspelt) key in the table, a value that is not a string and a URL that cannot be used are a
// [*ConfigError] that names file and line. A file that cannot be read is an error that wraps the cause, so that
// errors.Is(err, fs.ErrNotExist) works; so is one that is not a regular file, such as a named pipe, or is larger than 1
// MiB.
func LoadConfig(path string) (Config, error) {
	data, _, err := regular.Read(path, maxConfig, 0)
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxConfig)
	}
	if err != nil {
		return Config{}, fmt.Errorf("bridge: reading the configuration: %w", err)
	}
	return parseConfig(path, string(data))
}

// Enabled says whether all four fields are set.
func (c Config) Enabled() bool { return len(c.missing()) == 0 }

// missing names the fields that are not set, as the file spells them.
func (c Config) missing() []string {
	var names []string
	for _, key := range configKeys {
		if text, err := input.Text(c.get(key)); text == "" && err == nil {
			names = append(names, key)
		}
	}
	return names
}

// cleaned returns the configuration without the white space around its values. Its errors do not quote a value, which
// may be the secret.
func (c Config) cleaned() (Config, error) {
	for _, key := range configKeys {
		text, err := input.Text(c.get(key))
		if err != nil {
			return Config{}, fmt.Errorf("%s %w", key, err)
		}
		c.set(key, text)
	}
	return c, nil
}

var configKeys = [...]string{"url", "token_url", "client_id", "client_secret"}

func (c Config) get(key string) string {
	switch key {
	case "url":
		return c.URL
	case "token_url":
		return c.TokenURL
	case "client_id":
		return c.ClientID
	}
	return c.ClientSecret.Reveal()
}

func (c *Config) set(key, text string) {
	switch key {
	case "url":
		c.URL = text
	case "token_url":
		c.TokenURL = text
	case "client_id":
		c.ClientID = text
	case "client_secret":
		c.ClientSecret = secret.New(text)
	}
}

// table is what the file calls ours.
const table = "push_relay"

func parseConfig(path, text string) (Config, error) {
	var config Config
	var tables map[string]toml.Primitive
	md, err := toml.Decode(text, &tables)
	if err != nil {
		return Config{}, tomlError(path, err)
	}
	for _, key := range md.Keys() {
		if looksLikeOurs(key) {
			config.lookalikes = append(config.lookalikes, key.String())
		}
	}
	found, ok := tables[table]
	if !ok {
		return config, nil
	}
	var whole any
	if err := md.PrimitiveDecode(found, &whole); err != nil {
		return Config{}, tomlError(path, err)
	}
	values, ok := whole.(map[string]any)
	if !ok {
		return Config{}, &ConfigError{path, lineOf(md, found), errors.New("push_relay must be a table")}
	}
	var places map[string]toml.Primitive // knows the lines
	if err := md.PrimitiveDecode(found, &places); err != nil {
		return Config{}, tomlError(path, err)
	}
	for _, key := range md.Keys() {
		if len(key) != 2 || key[0] != table {
			continue
		}
		if err := config.read(key[1], values[key[1]]); err != nil {
			return Config{}, &ConfigError{path, lineOf(md, places[key[1]]), err}
		}
	}
	return config, nil
}

// looksLikeOurs says whether somebody may have meant [push_relay], or a key in it, by a key that is neither: another
// case or spelling of the table, and our keys outside of it.
func looksLikeOurs(key toml.Key) bool {
	name := letters(strings.Join(key, ""))
	switch {
	case key[0] == table || len(key) > 2:
		return false
	case len(key) == 2:
		return name == letters(table) && letters(key[1]) != "" // [push.relay]
	}
	if slices.ContainsFunc(configKeys[1:], func(ours string) bool { return name == letters(ours) }) {
		return true // "url" alone may be anything
	}
	return strings.HasPrefix(name, letters(table)) || edits(name, letters(table)) <= 2
}

// letters drops the case of a name and what is no letter.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// edits is how many characters are to be inserted, deleted or replaced to make b of a (the Levenshtein distance), or
// more than two.
func edits(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	row := make([]int, len(b)+1) // of the distances between the start of a and each start of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// read checks one value of the table and keeps it. Its errors do not quote the value, which may be the secret.
func (c *Config) read(key string, v any) error {
	if !slices.Contains(configKeys[:], key) {
		return fmt.Errorf("unknown key %q in [push_relay]; the keys are %s", key, strings.Join(configKeys[:], ", "))
	}
	raw, ok := v.(string)
	if !ok {
		return fmt.Errorf("%s must be a string", key)
	}
	text, err := input.Text(raw)
	if err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	if text != "" && strings.HasSuffix(key, "url") {
		if err := checkURL(key, text); err != nil {
			return err
		}
	}
	c.set(key, text)
	return nil
}

func checkURL(key, text string) error {
	if _, err := input.BaseURL(text); err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	return nil
}

// lineOf returns the line of a value. The decoder gives it only as part of an error, so lineOf makes one.
func lineOf(md toml.MetaData, v toml.Primitive) int {
	parse, _ := errors.AsType[toml.ParseError](md.PrimitiveDecode(v, new(refusing)))
	return parse.Position.Line
}

type refusing struct{}

// UnmarshalTOML implements [toml.Unmarshaler].
func (*refusing) UnmarshalTOML(any) error { return errors.New("refused") }

// tomlError keeps the line of a syntax error and what it says up to the first quotation: the decoder quotes the file,
// and the file holds the secret.
func tomlError(path string, err error) error {
	failed := &ConfigError{Path: path, Err: errors.New("not valid TOML")}
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		failed.Line = parse.Position.Line
		if said := strings.TrimRight(before(parse.Message, "\"'`"), " :,("); said != "" {
			failed.Err = fmt.Errorf("not valid TOML: %s", said)
		}
	}
	return failed
}

// before returns s up to the first of the characters.
func before(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
