// Package sqltest tests the SQL state of package relay against PostgreSQL and SQLite:
//
//	.ci/postgres go -C relay/sqltest test ./...
//
// It is a module of its own, so that the drivers are nobody's dependencies.
package sqltest
