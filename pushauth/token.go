package pushauth

import (
	"time"

	"github.com/sealpush/sealpush/secret"
)

// Token is a bearer token as the token service issued it.
type Token struct {
	Value  secret.Text // what follows "Bearer " in the Authorization header
	Expiry time.Time   // when it ends, by this machine's clock; zero when neither the service nor the token says
}
