// Package sqltest runs the store suite against real databases. It is a module of its own so that their drivers are
// nobody's dependency: go get of the SDK brings none of them.
//
// The tests want a PostgreSQL server whose connection string is in SEALPUSH_TEST_POSTGRES; .ci/postgres starts one:
//
//	.ci/postgres sh -c 'cd relayclient/pairing/sqltest && go test -race ./...'
//
// TestFleetOfVersions builds a node of an older version from git history, and fails where there is none: in a shallow
// clone, run git fetch --unshallow first.
package sqltest
