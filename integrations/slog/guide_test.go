package slogpage_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	slogpage "github.com/sealpush/sealpush/integrations/slog"
	"github.com/sealpush/sealpush/relayclient"
)

// A program made of the guide's block: what it logs at Error is on the phone when it has ended.
func TestGuide(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	w := pagetest.New(t)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := logs(t.Context(), w.Notifier); err != nil {
		t.Fatal(err)
	}
	if alerts := w.Alerts(t); len(alerts) != 1 || alerts[0].FailReason != "no space left" {
		t.Errorf("the phone shows %+v", alerts)
	}
}

func logs(ctx context.Context, notifier *relayclient.Notifier) error {
	pages, err := slogpage.New(notifier, slog.Default().Handler())
	if err != nil {
		return err
	}
	slog.SetDefault(slog.New(pages))
	defer pages.Close(ctx) // sends what is still waiting

	slog.Error("no space left")
	return nil
}
