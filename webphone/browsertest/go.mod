module github.com/sealpush/sealpush/webphone/browsertest

go 1.26.0

require (
	github.com/chromedp/cdproto v0.160.1
	github.com/chromedp/chromedp v0.23.1
	github.com/sealpush/sealpush v0.0.0
	github.com/sealpush/sealpush/webphone v0.0.0
)

require (
	github.com/MicahParks/jwkset v0.11.4 // indirect
	github.com/SherClockHolmes/webpush-go v1.4.0 // indirect
	github.com/cloudflare/circl v1.6.5 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace (
	github.com/sealpush/sealpush => ../..
	github.com/sealpush/sealpush/webphone => ../
)
