package payload_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/secret"
)

// built stands in for the time at which an alert is built, so that the examples print the same every day.
var built = time.Date(2026, 7, 23, 1, 2, 3, 0, time.UTC)

func ExampleNewSuccess() {
	alert := payload.NewSuccess("db-1", "nightly-backup")
	alert.Time = built // the constructor has set it to now
	alert.ExitCode = new(0)

	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", fitted.Plaintext)
	// Output: {"v":1,"kind":"success","name":"nightly-backup","success":true,"host":"db-1","ts":"2026-07-23T01:02:03+00:00","exit_code":0}
}

func ExampleNewFailure() {
	output := "pg_dump: connecting\npg_dump: error: disk is full\n"

	alert := payload.NewFailure("db-1", "nightly-backup")
	alert.Time = built
	alert.ExitCode = new(1)
	alert.FailReason = "exit code 1"
	alert.LogTail = payload.LogTail(output)

	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", fitted.Plaintext)
	// Output: {"v":1,"kind":"failure","name":"nightly-backup","success":false,"host":"db-1","ts":"2026-07-23T01:02:03+00:00","exit_code":1,"fail_reason":"exit code 1","log_tail":["pg_dump: connecting","pg_dump: error: disk is full"]}
}

func ExampleNewSLA() {
	alert := payload.NewSLA("db-1", "nightly-backup", payload.CheckMaxRuntime, time.Hour, 2*time.Hour+1250*time.Millisecond)
	alert.Time = built
	alert.LastSuccessAt = built.Add(-24 * time.Hour)

	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", fitted.Plaintext)
	// Output: {"v":1,"kind":"sla","name":"nightly-backup","success":false,"host":"db-1","ts":"2026-07-23T01:02:03+00:00","sla_check":"maxRuntime","threshold_seconds":3600,"observed_seconds":7201.25,"last_success_at":"2026-07-22T01:02:03+00:00"}
}

func ExampleNewEvent() {
	alert := payload.NewEvent("node-a", "etl", payload.EventApprovalWaiting)
	alert.Time = built
	alert.Subject = "etl waits for an approval"
	alert.Message = "Task publish has been waiting since 01:00."
	alert.TaskKey = "publish"

	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", fitted.Plaintext)
	// Output: {"v":1,"kind":"event","name":"etl","success":false,"host":"node-a","ts":"2026-07-23T01:02:03+00:00","event":"approval_waiting","subject":"etl waits for an approval","message":"Task publish has been waiting since 01:00.","taskkey":"publish"}
}

func ExampleNewTest() {
	alert := payload.NewTest("node-a")
	fmt.Println(alert.Kind, alert.Name, alert.Success)
	fmt.Println(alert.Message)
	// Output:
	// test test true
	// Test alert: this phone is paired and can read what this daemon seals.
}

func ExampleFit() {
	alert := payload.NewFailure("db-1", "nightly-backup")
	alert.LogTail = payload.LogTail(strings.Repeat(strings.Repeat("x", 100)+"\n", 40))

	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(fitted.Plaintext), "bytes,", fitted.Trimmed.LogLines, "lines dropped,", len(fitted.Alert.LogTail), "kept")
	// Output: 2184 bytes, 20 lines dropped, 20 kept
}

func ExampleFit_errors() {
	foreign := payload.NewFailure("db-1", "nightly-backup")
	foreign.Subject = "Backup failed" // events have subjects
	_, err := payload.Fit(foreign, 2202)
	if field, ok := errors.AsType[*payload.FieldError](err); ok {
		fmt.Println(field.Field)
	}
	fmt.Println(err)

	endless := payload.NewFailure("db-1", strings.Repeat("backup-", 500))
	_, err = payload.Fit(endless, 2202)
	if size, ok := errors.AsType[*payload.SizeError](err); ok {
		fmt.Println(size.Size, "bytes, limit", size.Limit)
	}
	// Output:
	// subject
	// payload: subject does not belong on an alert of kind failure
	// 3597 bytes, limit 2202
}

func ExampleParse() {
	alert, err := payload.Parse([]byte(`{"v":1,"kind":"failure","name":"nightly-backup","success":false,` +
		`"host":"db-1","ts":"2026-07-23T01:02:03Z","exit_code":137,"mood":"gloomy"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(alert.Kind, alert.Name, alert.Host, alert.Time, *alert.ExitCode)

	_, err = payload.Parse([]byte(`{"v":2}`))
	fmt.Println(err, errors.Is(err, payload.ErrVersion))
	// Output:
	// failure nightly-backup db-1 2026-07-23 01:02:03 +0000 UTC 137
	// payload: v is 2: unsupported payload version true
}

func ExampleAlert_Stale() {
	alert := payload.NewFailure("db-1", "nightly-backup")
	alert.Time = built

	fmt.Println(alert.Stale(built.Add(10 * time.Minute)))
	fmt.Println(alert.Stale(built.Add(10*time.Minute + time.Second)))
	// Output:
	// false
	// true
}

func ExampleLogTail() {
	fmt.Printf("%q\n", payload.LogTail("connecting\r\nretrying\n\ngiving up\n"))
	// Output: ["connecting" "retrying" "" "giving up"]
}

func ExampleAlert_CollapseID() {
	salt := secret.New("9a1d5e0c9ab64a1f8e7c6b5a49382716") // from NewSalt, kept by the installation

	alert := payload.NewFailure("db-1", "nightly-backup")
	again := payload.NewFailure("db-2", "nightly-backup") // another node reports the same
	again.FailReason = "exit code 1"

	fmt.Println(alert.CollapseID(salt) == again.CollapseID(salt))
	fmt.Println(len(alert.CollapseID(salt)))
	// Output:
	// true
	// 32
}
