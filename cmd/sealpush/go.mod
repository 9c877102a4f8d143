module github.com/sealpush/sealpush/cmd/sealpush

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/sealpush/sealpush v0.0.0-00010101000000-000000000000
	golang.org/x/net v0.62.0
)

require (
	github.com/MicahParks/jwkset v0.11.4 // indirect
	github.com/cloudflare/circl v1.6.5 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/sealpush/sealpush => ../..
