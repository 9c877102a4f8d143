//go:build !unix

package regular

// Flags of [os.OpenFile], which only Unix has.
const (
	NonBlock = 0
	NoFollow = 0
)
