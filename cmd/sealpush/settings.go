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

	"github.com/BurntSushi/toml"
)

const (
	configName     = "sealpush.toml"
	configVariable = "SEALPUSH_CONFIG"
)

// settings are the flags of one command, whose values come from, in rising order: sealpush.toml of the system, that of the
// user, the file of -config, the environment, the command line. Flag -a-b of command c is a_b in table [c] of a file, and
// SEALPUSH_C_A_B in the environment. One that several commands share is a_b at the top of a file, and SEALPUSH_A_B. A
// secret can be given as the name of a file that holds it: a_b_file, SEALPUSH_A_B_FILE.
type settings struct {
	command string
	flags   *flag.FlagSet
	run     runFunc
	config  string            // the flag
	shared  map[string]bool   // flags that have the same meaning in every command
	secret  map[string]bool   // flags whose values are never printed
	origin  map[string]string // where a flag's value is from, if it is not the default
}

func newSettings(c command) *settings {
	s := &settings{
		command: c.name, flags: flag.NewFlagSet(c.name, flag.ContinueOnError),
		shared: map[string]bool{}, secret: map[string]bool{}, origin: map[string]string{},
	}
	s.flags.SetOutput(io.Discard)
	s.run = c.setup(s)
	s.flags.StringVar(&s.config, "config", "", "`file` with settings, read after those of the system and the user (or $"+configVariable+")")
	return s
}

// relayURL declares -relay-url.
func (s *settings) relayURL(value *string) {
	s.flags.StringVar(value, "relay-url", "", "`URL` that sealed alerts are posted to")
	s.shared["relay-url"], s.secret["relay-url"] = true, true
}

// registry declares -registry.
func (s *settings) registry(value *string) {
	s.flags.StringVar(value, "registry", "", "where the paired phones are: a `file`, sqlite:FILE or the postgres:// URL of a database")
	s.shared["registry"], s.secret["registry"] = true, true
}

// secretVar declares a flag of the command's own that is never printed.
func (s *settings) secretVar(value *string, name, usage string) {
	s.flags.StringVar(value, name, "", usage)
	s.secret[name] = true
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
	if err := s.flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	s.flags.Visit(func(f *flag.Flag) { s.origin[f.Name] = "the command line" })
	if err := s.fromEnvironment(getenv); err != nil {
		return err
	}
	if s.config == "" {
		s.config = getenv(configVariable)
	}
	files := configFiles(s.config)
	for i, path := range slices.Backward(files) { // what has a value keeps it
		err := s.fromFile(path)
		if errors.Is(err, fs.ErrNotExist) && (i < len(files)-1 || s.config == "") {
			continue
		}
		if err != nil {
			return usagef("%w", err)
		}
	}
	return nil
}

// configFiles are where settings may be, in rising order.
func configFiles(last string) []string {
	var files []string
	if runtime.GOOS != "windows" {
		files = append(files, filepath.Join("/etc/sealpush", configName))
	}
	if dir, err := os.UserConfigDir(); err == nil { // cron may have no HOME
		files = append(files, filepath.Join(dir, "sealpush", configName))
	}
	if last != "" {
		files = append(files, last)
	}
	return files
}

func (s *settings) fromEnvironment(getenv func(string) string) error {
	for _, name := range s.configurable() {
		variable := s.variable(name)
		value, from := getenv(variable), "$"+variable
		if path := getenv(variable + "_FILE"); path != "" && s.secret[name] {
			if value != "" {
				return usagef("$%s and $%[1]s_FILE are both set: unset one", variable)
			}
			from += "_FILE"
			var err error
			if value, err = readSecret(path); err != nil {
				return usagef("%s: %w", from, err)
			}
		}
		if value == "" {
			continue
		}
		if err := s.set(name, value, from); err != nil {
			return err
		}
	}
	return nil
}

// fromFile reads one sealpush.toml. A key that no command knows is an error, because it may be a spelling mistake.
func (s *settings) fromFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var tables map[string]any
	if err := toml.Unmarshal(content, &tables); err != nil {
		return fmt.Errorf("%s is not valid TOML: %w", path, err)
	}
	top := maps.Clone(tables)
	for name, value := range tables {
		table, isTable := value.(map[string]any)
		if !isTable {
			continue
		}
		delete(top, name)
		c, known := find(name)
		if !known {
			return fmt.Errorf("%s: there is no command for table [%s]", path, name)
		}
		of := s
		if name != s.command {
			of = newSettings(c)
		}
		if err := of.fromTable(path, name, table); err != nil {
			return err
		}
	}
	if err := s.fromTable(path, "", top); err != nil {
		return err
	}
	known := sharedKeys()
	for key := range top {
		if !slices.Contains(known, strings.TrimSuffix(key, "_file")) {
			return fmt.Errorf("%s: unknown key %s: the top of the file takes %s", path, key, strings.Join(known, ", "))
		}
	}
	return nil
}

// fromTable takes the values of one table, and of the top of a file those that the command shares. Keys that are left are
// unknown.
func (s *settings) fromTable(path, table string, values map[string]any) error {
	values = maps.Clone(values)
	for _, name := range s.configurable() {
		in, key := s.key(name)
		if in != table {
			continue
		}
		value, given := values[key]
		file, inFile := values[key+"_file"]
		delete(values, key)
		switch {
		case !s.secret[name] || !inFile:
		case given:
			return fmt.Errorf("%s: %s and %[2]s_file are both set: remove one", path, key)
		default:
			delete(values, key+"_file")
			text, err := readSecret(beside(path, fmt.Sprint(file)))
			if err != nil {
				return fmt.Errorf("%s: %s_file: %w", path, key, err)
			}
			value, given = text, true
		}
		if !given {
			continue
		}
		switch value.(type) {
		case string, bool, int64, float64:
		default:
			return fmt.Errorf("%s: %s must be a string, a number, true or false", path, key)
		}
		if err := s.set(name, fmt.Sprint(value), path); err != nil {
			return err
		}
	}
	if table != "" && len(values) > 0 {
		return fmt.Errorf("%s: unknown key %s in [%s]", path, slices.Sorted(maps.Keys(values))[0], table)
	}
	return nil
}

// set gives a flag a value, unless it has one of a higher rank.
func (s *settings) set(name, value, from string) error {
	if _, given := s.origin[name]; given {
		return nil
	}
	if err := s.flags.Set(name, value); err != nil { // the cause quotes the value
		if s.secret[name] {
			return usagef("the value of -%s from %s cannot be used", name, from)
		}
		return usagef("-%s from %s: %w", name, from, err)
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

// beside is a path that a file names, which is relative to that file.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// maxSecret is in bytes. It is more than any URL or token.
const maxSecret = 16 << 10

// readSecret returns what a file holds, without space around it.
func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(content))
	if text == "" || len(content) > maxSecret {
		return "", fmt.Errorf("%s must hold one secret of at most %d bytes", path, maxSecret)
	}
	return text, nil
}
