module github.com/sealpush/sealpush/cmd/sealpush

go 1.26.0

require github.com/BurntSushi/toml v1.6.0

replace github.com/sealpush/sealpush => ../..
