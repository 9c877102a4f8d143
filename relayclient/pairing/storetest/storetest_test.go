package storetest_test

import "testing"

func TestAuditStore(t *testing.T) { suite(t) }
