// Package sourcestest holds the tests of what feeds pages in against the programs themselves, and runs the blocks of
// docs/sources.md. It is a module of its own because these programs have to be installed: the gate does that.
package sourcestest
