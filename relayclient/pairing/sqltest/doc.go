// Package sqltest runs the store suite against real databases. It is a module of its own so that their drivers are
// nobody's dependency: go get of the SDK brings none of them.
//
// The tests want a PostgreSQL server whose connection string is in SEALPUSH_TEST_POSTGRES; .ci/postgres starts one:
//
//	.ci/postgres sh -c 'cd relayclient/pairing/sqltest && go test -race ./...'
//
// TestFleetOfVersions builds a node of an older version, commit d649c1f, from what this printed:
//
//	git archive d649c1f go.mod go.sum seal payload relayclient internal pushauth | gzip -9n
//
// without the tests and packages that the node does not need.
package sqltest
