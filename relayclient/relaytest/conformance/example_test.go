package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

// A relay that takes everything is easily written, and keeps the contract in
// everything but what it must refuse.
func ExampleEvaluate() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()

	report, err := conformance.Evaluate(context.Background(), conformance.Target{URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, result := range report.Results {
		if result.Verdict == conformance.Fail {
			fmt.Printf("%s: %s\n", result.Check, result.Detail)
		}
	}
	// Output:
	// refuse-not-json: no body: want a 4xx other than 410 and 429; answered 202
	// refuse-not-object: null: want a 4xx other than 410 and 429; answered 202
	// refuse-v: v is missing: want a 4xx other than 410 and 429; answered 202
	// refuse-device: device is missing: want a 4xx other than 410 and 429; answered 202
	// refuse-ciphertext: ciphertext is missing: want a 4xx other than 410 and 429; answered 202
	// refuse-collapse-id: collapseId is missing: want a 4xx other than 410 and 429; answered 202
	// refuse-priority: priority is missing: want a 4xx other than 410 and 429; answered 202
	// endure-oversize: a body of 1 MiB was answered 202
}
