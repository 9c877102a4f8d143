package verify_test

import "time"

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
