module github.com/sealpush/sealpush

go 1.26.0
