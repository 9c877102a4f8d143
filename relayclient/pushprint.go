package relayclient

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// String names the push by the kind of its alert, and says nothing that the relay does not learn.
func (p Push) String() string { return fmt.Sprintf("%s push of a %q alert", p.Priority, p.Alert.Kind) }

// Format prints what [Push.String] returns, whatever the verb.
func (p Push) Format(s fmt.State, _ rune) { io.WriteString(s, p.String()) }

// LogValue logs what [Push.String] returns.
func (p Push) LogValue() slog.Value { return slog.StringValue(p.String()) }

// MarshalJSON encodes what [Push.String] returns: a Push is sent, not stored.
func (p Push) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }
