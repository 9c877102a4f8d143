// Package pushauth trades a client secret for a short-lived bearer token and puts it on requests.
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
// Errors of the token service are a [*TokenError]; wrong credentials match [ErrInvalidClient]. While a failure is
// fresh (5 s, for wrong credentials 60 s) no request is made and a [*BackoffError] says when the next one is. A
// refresh that fails while the old token still lives is logged at Warn, and the old token is used.
//
// # Time
//
// A token's end is watched on two clocks. On Linux the monotonic clock stands still while a machine is suspended, so
// the wall clock ends a token too; and a wall clock that is set back prolongs none, because the monotonic clock goes on.
// A machine whose clock is ahead by more than a token's life takes every token for expired. It works, with one fetch per
// call.
//
// # Secrets
//
// Client secret and token are a [github.com/sealpush/sealpush/secret.Text], which prints as a placeholder, and no error or log
// line holds one. No redirect of the token service is followed.
package pushauth
