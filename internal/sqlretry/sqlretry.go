// Package sqlretry tells failures of a statement that may pass from others.
package sqlretry

import (
	"errors"
	"strings"
)

// Passing reports whether a statement failed for what other connections do, so that
// it may well succeed when it is repeated. It has changed nothing then.
func Passing(err error) bool {
	if err == nil {
		return false
	}
	var code interface{ SQLState() string } // of PostgreSQL's drivers
	if errors.As(err, &code) {
		return code.SQLState() == "40001" || code.SQLState() == "40P01" // serialization, deadlock
	}
	return strings.Contains(err.Error(), "database is locked") // SQLite's drivers have no type in common
}
