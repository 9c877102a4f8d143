package pushauth

import (
	"fmt"
	"net/url"

	"github.com/sealpush/sealpush/internal/input"
	"github.com/sealpush/sealpush/secret"
)

// Credentials are what the operator of a token service hands out once, when a client is created.
//
// White space, line ends and a byte order mark around a field are dropped, as they come with a file or a copied text.
// White space, control characters and what is not UTF-8 inside one are refused by [NewSource].
type Credentials struct {
	TokenURL     string // base URL of the token service; "/token" is added to it
	ClientID     string
	ClientSecret secret.Text
}

// cleaned returns the credentials as they are sent, and the URL that issues tokens.
func (c Credentials) cleaned() (Credentials, *url.URL, error) {
	base, err := input.BaseURL(c.TokenURL)
	if err != nil {
		return c, nil, fmt.Errorf("pushauth: token URL %w", err)
	}
	if c.ClientID, err = input.Text(c.ClientID); err != nil {
		return c, nil, fmt.Errorf("pushauth: client id %w", err)
	}
	clientSecret, err := input.Text(c.ClientSecret.Reveal())
	if err != nil {
		return c, nil, fmt.Errorf("pushauth: client secret %w", err)
	}
	c.ClientSecret = secret.New(clientSecret)
	switch {
	case c.ClientID == "":
		return c, nil, fmt.Errorf("pushauth: client id is empty")
	case c.ClientSecret.IsZero():
		return c, nil, fmt.Errorf("pushauth: client secret is empty")
	}
	return c, base.JoinPath("token"), nil
}
