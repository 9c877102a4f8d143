// Package pairing remembers which phones get paged, and the one salt that a fleet's collapse ids share.
package pairing
