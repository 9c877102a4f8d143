module github.com/sealpush/sealpush/examples/bridge

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/sealpush/sealpush v0.0.0
	golang.org/x/net v0.62.0
)

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
)

replace github.com/sealpush/sealpush => ../..
