//go:build linux

package sourcestest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The programs that are unpacked, not installed.
const unpackRecipes = "run the tests with .ci/recipes"

func init() {
	for title, runner := range map[string]func(*testing.T, *trial){
		"On a server":            onAServer,
		"systemd":                systemd,
		"restic and Borg":        resticAndBorg,
		"smartd":                 smartd,
		"mdadm":                  mdadm,
		"apcupsd":                apcupsd,
		"unattended-upgrades":    unattendedUpgrades,
		"GitHub Actions":         githubActions,
		"GitLab CI":              gitlabCI,
		"Kubernetes":             kubernetes,
		"log/slog":               inAGoProgram,
		"robfig/cron and gocron": inAGoProgram,
		"nikoksr/notify":         inAGoProgram,
	} {
		runners[title] = runner
	}
}
