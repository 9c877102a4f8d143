package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/sealpush/sealpush/relayclient"
)

const (
	configName     = "sealpush.toml"
	registryName   = "devices.json"
	configVariable = "SEALPUSH_CONFIG"
)

// settings are the flags of one command, whose values come from, in rising order: sealpush.toml of the system, that of
// the user, the file of -config, the environment, the command line. Flag -a-b of command c is a_b in table [c] of a
// file, and SEALPUSH_C_A_B in the environment. One that several commands share is a_b at the top of a file, and
// SEALPUSH_A_B. A secret can be given as the name of a file that holds it: a_b_file, SEALPUSH_A_B_FILE.
type settings struct {
	command string
	flags   *flag.FlagSet
	run     runFunc
	config  string                                    // the flag
	shared  map[string]bool                           // flags that have the same meaning in every command
	secret  map[string]bool                           // flags whose values are never printed
	origin  map[string]string                         // where a flag's value is from, if it is not the default
	paths   map[string]func(dir, value string) string // flags whose value in a file is relative to that file's directory
	lenient bool
	wrong   error    // with the configuration of a lenient command
	read    []string // files that settings may have come from
	unread  []string // files that this user may not read
}

func newSettings(c command) *settings {
	s := &settings{
		command: c.name, flags: flag.NewFlagSet(c.name, flag.ContinueOnError),
		shared: map[string]bool{}, secret: map[string]bool{}, origin: map[string]string{},
		paths: map[string]func(dir, value string) string{}, lenient: c.lenient,
	}
	s.flags.SetOutput(io.Discard)
	s.run = c.setup(s)
	s.flags.StringVar(&s.config, "config", "", "`file` with settings, which take precedence over those in the files of the user and the system (or $"+configVariable+")")
	return s
}

// relayURL declares -relay-url.
func (s *settings) relayURL(value *string) {
	s.flags.StringVar(value, "relay-url", "", "`URL` that sealed alerts are posted to")
	s.shared["relay-url"], s.secret["relay-url"] = true, true
}

// registry declares -registry.
func (s *settings) registry(value *string) {
	s.flags.StringVar(value, "registry", "", "where the paired phones are: a `file`, sqlite:FILE or the postgres:// URL of a database (default: "+registryName+" beside the user's "+configName+")")
	s.shared["registry"], s.secret["registry"], s.paths["registry"] = true, true, registryBeside
}

// host declares -host.
func (s *settings) host(value *string) {
	s.flags.StringVar(value, "host", "", "`name` of this machine on the phone (default: its own)")
	s.shared["host"] = true
}

// priority declares -priority.
func (s *settings) priority(value *priority) {
	s.flags.TextVar(value, "priority", priority(relayclient.TimeSensitive), "`priority` on the phone: time-sensitive breaks through and makes a sound, passive waits quietly in the list")
	s.shared["priority"] = true
}

// patience declares -patience.
func (s *settings) patience(value *patience) {
	s.flags.TextVar(value, "patience", patience(2*time.Minute), "longest `time` to wait for a relay that cannot be reached, up to 9m")
	s.shared["patience"] = true
}

// spool declares -spool.
func (s *settings) spool(value *string) {
	s.flags.StringVar(value, "spool", "", "`directory` for alerts that could not be posted, which the next run or send posts")
	s.shared["spool"], s.paths["spool"] = true, beside
}

// secretVar declares a flag of the command's own that is never printed.
func (s *settings) secretVar(value *string, name, usage string) {
	s.flags.StringVar(value, name, "", usage)
	s.secret[name] = true
}

// path declares a flag of the command's own that names a file or a directory.
func (s *settings) path(value *string, name, usage string) {
	s.flags.StringVar(value, name, "", usage)
	s.paths[name] = beside
}

// key is a flag's name in a file, and table the one it is in, empty for the top.
func (s *settings) key(name string) (table, key string) {
	key = strings.ReplaceAll(name, "-", "_")
	if s.shared[name] {
		return "", key
	}
	return s.command, key
}

// variable is a flag's name in the environment.
func (s *settings) variable(name string) string {
	table, key := s.key(name)
	if table != "" {
		key = table + "_" + key
	}
	return "SEALPUSH_" + strings.ToUpper(key)
}

// configurable are the flags that a file or the environment can give.
func (s *settings) configurable() []string {
	var names []string
	s.flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "config" {
			names = append(names, f.Name)
		}
	})
	return names
}

// parse gives each flag its value.
func (s *settings) parse(args []string, getenv func(string) string) error {
	if s.lenient {
		args = withEmptyValues(s.flags, args)
	}
	if err := s.flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	s.flags.Visit(func(f *flag.Flag) {
		if s.secret[f.Name] {
			f.Value.Set(trimmed(f.Value.String())) // a text: it takes any
		}
		if f.Value.String() != "" { // an empty value counts as none
			s.origin[f.Name] = "the command line"
		}
	})
	problems := []error{s.fromEnvironment(getenv)}
	if s.config == "" {
		s.config = getenv(configVariable)
	}
	files := configFiles(s.config)
	for i, path := range slices.Backward(files) { // what has a value keeps it
		err := s.fromFile(path)
		optional := i < len(files)-1 || s.config == ""
		if optional && errors.Is(err, fs.ErrPermission) {
			s.unread = append(s.unread, path)
		}
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) // as of a HOME that is /dev/null
		if optional && (absent || errors.Is(err, fs.ErrPermission)) {
			continue
		}
		s.read = append(s.read, path)
		problems = append(problems, err)
	}
	s.useDefaultRegistry()
	err := errors.Join(problems...)
	if err == nil {
		return nil
	}
	err = usageError{err}
	if s.lenient {
		s.wrong, err = err, nil
	}
	return err
}

// useDefaultRegistry names the user's own registry, if the command has one and none is named. An empty -registry names
// none.
func (s *settings) useDefaultRegistry() {
	f := s.flags.Lookup("registry")
	if f == nil || f.Value.String() != "" || s.emptied("registry") {
		return
	}
	if path, ok := userFile(registryName); ok {
		f.Value.Set(path)
	}
}

// userFile is where a file of the user's configuration is. There is none without a home, as in some crontabs.
func userFile(name string) (path string, ok bool) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "sealpush", name), err == nil
}

// emptied reports whether the command line gives a flag an empty value, and nothing else gives it another.
func (s *settings) emptied(name string) bool {
	given := false
	s.flags.Visit(func(f *flag.Flag) { given = given || f.Name == name && f.Value.String() == "" })
	return given
}

// missing says how to give a setting that has no value.
func (s *settings) missing(name string) error {
	_, key := s.key(name)
	text := fmt.Sprintf("no %s: set %s in %s, $%s or -%s", strings.ReplaceAll(name, "-", " "), key, configName, s.variable(name), name)
	if len(s.unread) > 0 {
		text += "; this user may not read " + strings.Join(s.unread, ", ")
	}
	if _, err := os.UserConfigDir(); err != nil { // as in a service of systemd, and in some crontabs
		text += fmt.Sprintf("; the user's own files were not looked for: %v", err)
	}
	return errors.New(text)
}

// configFiles are where settings may be, in rising order.
func configFiles(last string) []string {
	var files []string
	if runtime.GOOS != "windows" {
		files = append(files, filepath.Join("/etc/sealpush", configName))
	}
	if path, ok := userFile(configName); ok {
		files = append(files, path)
	}
	if last != "" {
		files = append(files, last)
	}
	return files
}

func (s *settings) fromEnvironment(getenv func(string) string) error {
	var problems []error
	for _, name := range s.configurable() {
		variable := s.variable(name)
		value, from := getenv(variable), "$"+variable
		if path := getenv(variable + "_FILE"); path != "" && s.secret[name] {
			from += "_FILE"
			var err error
			if value != "" {
				err = fmt.Errorf("$%s and %s are both set: unset one", variable, from)
			} else if value, err = readSecret(path); err != nil {
				err = fmt.Errorf("%s: %w", from, err)
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
		}
		if value != "" {
			problems = append(problems, s.set(name, value, from))
		}
	}
	return errors.Join(problems...)
}

// fromFile reads one sealpush.toml. A key that no command knows is an error, because it may be a spelling mistake.
func (s *settings) fromFile(path string) error {
	content, err := readAtMost(path, maxConfig)
	if err != nil {
		return err
	}
	var tables map[string]any
	if err := toml.Unmarshal(content, &tables); err != nil {
		if where, ok := errors.AsType[toml.ParseError](err); ok { // its text may quote a secret
			return fmt.Errorf("%s is not valid TOML: see line %d", path, where.Position.Line)
		}
		return fmt.Errorf("%s is not valid TOML", path)
	}
	top := maps.Clone(tables)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		table, isTable := tables[name].(map[string]any)
		if !isTable {
			continue
		}
		delete(top, name)
		c, known := find(name)
		if !known {
			problems = append(problems, fmt.Errorf("%s: there is no command for table %s", path, keyText("["+name+"]", name)))
			continue
		}
		of := s
		if name != s.command {
			of = newSettings(c)
		}
		problems = append(problems, of.fromTable(path, name, table))
	}
	problems = append(problems, s.fromTable(path, "", top))
	known := sharedKeys()
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(known, strings.TrimSuffix(key, "_file")) {
			problem := fmt.Errorf("%s: unknown key %s: the top of the file takes %s", path, keyText(key, key), strings.Join(known, ", "))
			if _, isCommand := find(key); isCommand {
				problem = fmt.Errorf("%s: unknown key %s: the settings of that command follow a line [%[2]s]", path, key)
			}
			problems = append(problems, problem)
		}
	}
	return errors.Join(problems...)
}

// fromTable takes the values of one table, and of the top of a file those that the command shares. Keys that are left
// are unknown.
func (s *settings) fromTable(path, table string, values map[string]any) error {
	values = maps.Clone(values)
	var problems []error
	for _, name := range s.configurable() {
		if in, key := s.key(name); in == table {
			problems = append(problems, s.fromKey(path, name, key, values))
		}
	}
	if table != "" && len(values) > 0 {
		unknown := slices.Sorted(maps.Keys(values))[0]
		problems = append(problems, fmt.Errorf("%s: unknown key %s in [%s]", path, keyText(unknown, unknown), table))
	}
	return errors.Join(problems...)
}

// keyText is what to print of a key in a file: a key in quotes may be a URL with a password, in the wrong place.
func keyText(text, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool {
		return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) {
		return "in quotes"
	}
	return text
}

// fromKey gives a flag the value that a file has under key, or under key_file for a secret, and removes it from values.
func (s *settings) fromKey(path, name, key string, values map[string]any) error {
	value, given := values[key]
	delete(values, key)
	if file, inFile := values[key+"_file"]; inFile && s.secret[name] {
		delete(values, key+"_file")
		if given {
			return fmt.Errorf("%s: %s and %[2]s_file are both set: remove one", path, key)
		}
		name, isText := file.(string)
		if !isText {
			return fmt.Errorf("%s: %s_file must be a string, the name of a file", path, key)
		}
		text, err := readSecret(beside(filepath.Dir(path), name))
		if err != nil {
			return fmt.Errorf("%s: %s_file: %w", path, key, err)
		}
		value, given = text, true
	}
	if !given {
		return nil
	}
	_, isBool := value.(bool)
	switch value.(type) {
	case string, bool, int64, float64:
	default:
		return fmt.Errorf("%s: %s must be a string, a number, true or false", path, key)
	}
	if isBool && !isSwitch(s.flags.Lookup(name)) { // true would be the name of a directory
		return fmt.Errorf("%s: %s must be a string or a number", path, key)
	}
	text := fmt.Sprint(value)
	if resolve := s.paths[name]; resolve != nil && text != "" {
		text = resolve(filepath.Dir(path), text)
	}
	return s.set(name, text, path)
}

// set gives a flag a value, unless it has one of a higher rank.
func (s *settings) set(name, value, from string) error {
	if s.secret[name] {
		value = trimmed(value)
	}
	if _, given := s.origin[name]; given || value == "" {
		return nil
	}
	if err := s.flags.Set(name, value); err != nil { // the cause quotes the value
		f := s.flags.Lookup(name)
		f.Value.Set(f.DefValue) // a duration is 0 after an error
		if s.secret[name] {
			return fmt.Errorf("the value of -%s from %s cannot be used", name, from)
		}
		return fmt.Errorf("-%s from %s: %w", name, from, err)
	}
	s.origin[name] = from
	return nil
}

func sharedKeys() []string {
	keys := map[string]bool{}
	for _, c := range commands() {
		s := newSettings(c)
		for name := range s.shared {
			_, key := s.key(name)
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// beside is a path that a file in dir names, which is relative to that directory.
func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// priority is a relayclient.Priority that a flag can have.
type priority relayclient.Priority

// MarshalText writes the priority as the protocol does.
func (p priority) MarshalText() ([]byte, error) { return []byte(relayclient.Priority(p).String()), nil }

// UnmarshalText takes what MarshalText writes.
func (p *priority) UnmarshalText(text []byte) error {
	for _, known := range []relayclient.Priority{relayclient.TimeSensitive, relayclient.Passive} {
		if string(text) == known.String() {
			*p = priority(known)
			return nil
		}
	}
	return errors.New("it takes time-sensitive or passive")
}

// patience is a duration that relayclient.WithPatience takes.
type patience time.Duration

// MarshalText writes a duration as UnmarshalText takes it.
func (p patience) MarshalText() ([]byte, error) { return []byte(time.Duration(p).String()), nil }

// UnmarshalText takes a duration within bounds.
func (p *patience) UnmarshalText(text []byte) error {
	const most = 9 * time.Minute
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 || d > most {
		return fmt.Errorf("it takes a duration up to %v, such as 30s or 2m", most)
	}
	*p = patience(d)
	return nil
}

// A span is how long something may take. A negative one is refused, and so is none unless it may be none.
type span struct {
	value     *time.Duration
	mayBeNone bool
}

// String returns what Set takes.
func (s span) String() string {
	if s.value == nil { // package flag makes a zero value
		return "0s"
	}
	return s.value.String()
}

// Set takes a duration.
func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d == 0 && !s.mayBeNone {
		return errors.New("it takes a duration, such as 30s or 2h")
	}
	*s.value = d
	return nil
}

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

// String returns the word.
func (c choice) String() string {
	if c.value == nil { // package flag makes a zero value
		return ""
	}
	return *c.value
}

// Set takes one of the words.
func (c choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("it takes %s", strings.Trim(strings.Join(c.words, ", "), ", "))
	}
	*c.value = word
	return nil
}

// trimmed is a value without the white space, line ends and byte order marks around it, as they come with a file or a
// copied text.
func trimmed(value string) string {
	return strings.TrimFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
}

const (
	maxSecret = 16 << 10 // bytes: more than any URL or token
	maxConfig = 1 << 20  // bytes of a sealpush.toml

	// readTimeout is for a file that never ends, such as a named pipe or one on a network drive: what needs it goes on
	// without.
	readTimeout = 5 * time.Second
)

// readSecret returns what a file holds, without space around it.
func readSecret(path string) (string, error) {
	content, err := readAtMost(path, maxSecret)
	if err != nil {
		return "", err
	}
	text := trimmed(string(content))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// readAtMost reads a file of at most so many bytes, and waits for it for readTimeout.
func readAtMost(path string, most int64) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	read := make(chan result, 1)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			read <- result{nil, err}
			return
		}
		defer file.Close()
		content, err := io.ReadAll(io.LimitReader(file, most+1))
		if err == nil && int64(len(content)) > most {
			err = fmt.Errorf("%s has more than %d bytes", path, most)
		}
		read <- result{content, err}
	}()
	select {
	case r := <-read:
		return r.content, r.err
	case <-time.After(readTimeout):
		return nil, fmt.Errorf("%s cannot be read within %v: is it a pipe that nobody writes to, or on a drive that does not answer?", path, readTimeout)
	}
}
