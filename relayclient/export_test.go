package relayclient

import "net/http"

// Transport is the transport that users get, for tests to add a certificate to.
func (c *Client) Transport() *http.Transport { return c.transport }
