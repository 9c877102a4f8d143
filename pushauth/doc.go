// Package pushauth exchanges a client secret for a short-lived bearer token and sends the token with requests.
//
// A bridge holds [Credentials]: a client id and a client secret that the operator of a token service handed out once.
// [Source] posts them to {token_url}/token, as JSON, and keeps the JWT that comes back until less than 60 s of it
// remain. [Transport] sends it with each request of an [http.Client], and on 401 fetches anew and tries once more:
//
//	source, err := pushauth.NewSource(pushauth.Credentials{
//		TokenURL:     "https://token.example",
//		ClientID:     "bridge-home-office",
//		ClientSecret: secret.New(os.Getenv("CLIENT_SECRET")),
//	})
//	if err != nil {
//		return err
//	}
//	client := &http.Client{Transport: &pushauth.Transport{Source: source}}
//
// Package bridge does this for you when the relay is a push relay.
//
// # When something fails
//
// Errors of the token service are a [*TokenError]; wrong credentials match [ErrInvalidClient]. For 5 s after a failure
// (60 s after wrong credentials) no request is made; a [*BackoffError] says when the next one is allowed. A refresh
// that fails while the old token is still valid is logged at Warn, and the old token is used.
//
// # Time
//
// The expiry of a token is checked on two clocks, and the first to reach it counts. The wall clock goes on while a
// machine is suspended, when the monotonic clock of Linux stands still. The monotonic clock goes on when somebody sets
// the wall clock back. On a machine whose clock is ahead by more than the life of a token, every token looks expired;
// each call then fetches one.
//
// # Secrets
//
// Client secret and token are a [github.com/sealpush/sealpush/secret.Text], which prints as a placeholder, and no error
// or log line holds one. No redirect of the token service is followed.
//
// # Concurrency
//
// A [Source] and a [Transport] are safe for concurrent use. Credentials, tokens and errors are plain values: several
// goroutines may read one, and nobody may change it meanwhile.
package pushauth
