module github.com/sealpush/sealpush/integrations/sourcestest

go 1.26.0

require (
	github.com/sealpush/sealpush v0.0.0
	go.yaml.in/yaml/v3 v3.0.6
)

require (
	github.com/MicahParks/jwkset v0.11.4 // indirect
	github.com/cloudflare/circl v1.6.5 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/sealpush/sealpush => ../..
