// Package notifytest holds the tests of package notifypage with the real github.com/nikoksr/notify, in a module of their
// own, because that module brings many others.
package notifytest
