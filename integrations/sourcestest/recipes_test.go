//go:build linux

package sourcestest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A server is a directory in place of a server's root: the paths of a block are those below it.
type server struct {
	try  *trial
	root string
	host string
	env  []string // of the tool, as it is called on the server
}

// inRoot are the absolute paths that lie below a server's root.
var inRoot = regexp.MustCompile(`(^|[\s"'=,(<>])/(etc|home|proc|srv|usr/local)\b`)

// server is the one that section "On a server" has set up.
func (try *trial) server(t *testing.T) *server {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(try.home, "server")
	env := append(environment(try.home), "SEALPUSH_CONFIG="+filepath.Join(root, "etc", "sealpush", "sealpush.toml"))
	return &server{try: try, root: root, host: host, env: env}
}

func (s *server) path(name string) string { return filepath.Join(s.root, name) }

// inside is a text with paths of the server.
func (s *server) inside(text string) string {
	text = inRoot.ReplaceAllString(text, "$1"+s.root+"/$2")
	return s.try.ports.Replace(text)
}

// write makes a file, and the directories above it.
func (s *server) write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// stub puts a program in place of one that the server would have.
func (s *server) stub(t *testing.T, name, script string) {
	t.Helper()
	s.write(t, filepath.Join("stubs", name), "#!/bin/sh\n"+script, 0o755)
}

// command is one on the server, where stubs come before what is installed.
func (s *server) command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = s.root
	for _, entry := range slices.Concat(s.env, env) {
		if path, found := strings.CutPrefix(entry, "PATH="); found {
			entry = "PATH=" + s.path("stubs") + ":" + path
		}
		cmd.Env = append(cmd.Env, entry)
	}
	return cmd
}

// runs runs a command, which has to end with an exit code, and returns what it prints.
func runs(t *testing.T, cmd *exec.Cmd, exitCode int) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitCode {
		t.Fatalf("%v ended with %d, want %d:\n%s", cmd.Args, code, exitCode, out)
	}
	return string(out)
}

// setUp runs a block of commands.
func (s *server) setUp(t *testing.T, b block) {
	t.Helper()
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(s.inside(b.text), " deploy/", " "+repository+"/deploy/")
	runs(t, s.command(t, nil, "bash", "-euo", "pipefail", "-c", script), 0)
}

// shows waits until the phone shows what a block says, on this host and at any time.
func (s *server) shows(t *testing.T, b block) {
	t.Helper()
	_, text, found := strings.Cut(b.text, "  ")
	if !found {
		t.Fatalf("this is not what a phone shows: %s", b.text)
	}
	s.try.phone.program.Await(t, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSuffix(text, "\n")), " on db1", " on "+regexp.QuoteMeta(s.host)))
}

// cron runs the lines of a crontab in /etc/cron.d, and wants exit codes.
func (s *server) cron(t *testing.T, name string, exitCodes ...int) {
	t.Helper()
	crontab, err := os.ReadFile(s.path("etc/cron.d/" + name))
	if err != nil {
		t.Fatal(err)
	}
	schedule := regexp.MustCompile(`^(?:[0-9*,/-]+ +){5}root  (/.*)$`)
	variable := regexp.MustCompile(`^\w+=\S.*$`)
	var env []string
	ran := 0
	for line := range strings.Lines(string(crontab)) {
		line = strings.TrimSuffix(line, "\n")
		if match := schedule.FindStringSubmatch(line); match != nil && !strings.Contains(line, "%") && ran < len(exitCodes) {
			runs(t, s.command(t, env, "/bin/sh", "-c", match[1]), exitCodes[ran])
			ran++
		} else if variable.MatchString(line) {
			env = append(env, line)
		} else {
			t.Fatalf("%s: this is no line for cron: %s", name, line)
		}
	}
	if ran != len(exitCodes) {
		t.Errorf("%s has %d lines to run", name, ran)
	}
}

// recipePrograms is where .ci/recipes has unpacked what is not installed.
func recipePrograms(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RECIPE_PROGRAMS")
	if dir == "" {
		t.Fatal("smartd, mdadm and apcupsd are not there: run the tests with .ci/recipes")
	}
	return dir
}

func onAServer(t *testing.T, try *trial) {
	s := try.server(t)
	for _, dir := range []string{"etc/systemd/system", "etc/cron.d", "etc/mdadm", "etc/apcupsd", "etc/apt/apt.conf.d", "usr/local/bin", "usr/local/sbin", "home"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.setUp(t, try.next(t))
	try.phone.program.Await(t, "TEST     test on "+regexp.QuoteMeta(s.host))
}

// The unit's command runs, with a journal that is played.
func systemd(t *testing.T, try *trial) {
	s := try.server(t)
	s.stub(t, "systemctl", "test \"$*\" = daemon-reload\n")
	s.stub(t, "journalctl", "test \"$1\" = --unit=nightly-backup.service && test \"$2\" = --lines=40 && cat journal\n")
	s.setUp(t, try.next(t))
	shown := try.nextOutput(t)
	var journal strings.Builder
	for _, line := range strings.Split(shown.text, "\n")[1:] {
		_, logged, _ := strings.Cut(line, "| ")
		fmt.Fprintln(&journal, logged)
	}
	s.write(t, "journal", journal.String(), 0o644)

	dropIn, err := os.ReadFile(s.path("etc/systemd/system/nightly-backup.service.d/page.conf"))
	if err != nil {
		t.Fatal(err)
	}
	_, starts, _ := strings.Cut(string(dropIn), "\nOnFailure=")
	starts = strings.ReplaceAll(strings.TrimSpace(starts), "%n", "nightly-backup.service")
	template, instance, _ := strings.Cut(strings.TrimSuffix(starts, ".service"), "@")
	unit, err := os.ReadFile(s.path("etc/systemd/system/" + template + "@.service"))
	if err != nil {
		t.Fatal(err)
	}
	var command string
	var env []string
	for line := range strings.Lines(string(unit)) {
		line = strings.NewReplacer("%i", instance, "%d", s.path("etc/sealpush"), "$$", "$").Replace(strings.TrimSpace(line))
		if value, found := strings.CutPrefix(line, "ExecStart="); found {
			command = s.inside(value)
		} else if value, found := strings.CutPrefix(line, "Environment="); found {
			env = append(env, value)
		}
	}
	// systemd splits quoted words as a shell does.
	runs(t, s.command(t, append(env, "SEALPUSH_CONFIG="), "/bin/sh", "-c", command), 0)
	s.shows(t, shown)
}

func resticAndBorg(t *testing.T, try *trial) {
	need(t, "restic", "run the tests with .ci/recipes")
	need(t, "borg", "run the tests with .ci/recipes")
	s := try.server(t)
	// In memory: the programs flush each of hundreds of files to the disk.
	memory, err := os.MkdirTemp("/dev/shm", "sealpush-sources-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(memory)
	if err := os.Symlink(memory, s.path("srv")); err != nil {
		t.Fatal(err)
	}
	s.setUp(t, try.next(t))
	s.write(t, "home/letter", "Dear Sir or Madam", 0o644)
	s.write(t, "etc/restic-password", "correct horse", 0o600)
	s.write(t, "etc/borg-passphrase", "battery staple", 0o600)
	repository := []string{"RESTIC_REPOSITORY=" + s.path("srv/restic"), "RESTIC_PASSWORD_FILE=" + s.path("etc/restic-password"),
		"BORG_REPO=" + s.path("srv/borg"), "BORG_PASSCOMMAND=cat " + s.path("etc/borg-passphrase")}
	runs(t, s.command(t, repository, "restic", "init", "--quiet"), 0)
	runs(t, s.command(t, repository, "borg", "init", "--encryption=repokey-blake2"), 0)
	s.cron(t, "restic", 0, 0)
	s.cron(t, "borg", 0)
	if out := runs(t, s.command(t, repository, "borg", "list", "--short"), 0); len(strings.Fields(out)) != 1 {
		t.Errorf("borg made these archives: %s", out)
	}
	// What breaks a backup: the repositories are gone.
	for _, name := range []string{"restic", "borg"} {
		if err := os.Rename(s.path("srv/"+name), s.path("srv/"+name+".lost")); err != nil {
			t.Fatal(err)
		}
	}
	s.cron(t, "restic", 1, 1)
	s.shows(t, try.nextOutput(t))
	s.try.phone.program.Await(t, `FAILURE  restic-check on .*\n( +\| .*\n)*.*Is there a repository at the following location`)
	s.cron(t, "borg", 2)
	s.shows(t, try.nextOutput(t))
	s.try.phone.program.Await(t, `FAILURE  borg on .*\n( +\| .*\n)*.*Repository .* does not exist`)
	for _, secret := range []string{"correct horse", "battery staple"} {
		if strings.Contains(try.phone.program.Output(), secret) {
			t.Errorf("the phone shows %q", secret)
		}
	}
}

// smartd reads the line of its configuration, and the script that it calls runs what that line names; the disk is played.
func smartd(t *testing.T, try *trial) {
	s := try.server(t)
	programs := recipePrograms(t)
	config, err := os.ReadFile(filepath.Join(programs, "etc/smartd.conf"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "etc/smartd.conf", string(config), 0o644)
	s.setUp(t, try.next(t))
	out, _ := s.command(t, nil, filepath.Join(programs, "usr/sbin/smartd"), "-c", s.path("etc/smartd.conf"), "-q", "onecheck").CombinedOutput()
	if !strings.Contains(string(out), "was parsed, found DEVICESCAN") { // there may be no disk
		t.Errorf("smartd says\n%s", out)
	}
	if config, err = os.ReadFile(s.path("etc/smartd.conf")); err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^DEVICESCAN .*-m <nomailer> -M exec (/\S+)$`).FindStringSubmatch(string(config))
	if match == nil {
		t.Fatalf("smartd.conf calls nothing:\n%s", config)
	}
	// What smartd sets (smartd.conf(5), directive -M exec).
	env := []string{
		"SMARTD_MAILER=" + match[1], "SMARTD_DEVICE=/dev/sda", "SMARTD_DEVICETYPE=sat", "SMARTD_DEVICESTRING=/dev/sda [SAT]",
		"SMARTD_DEVICEINFO=WDC WD40EFRX-68N32N0, S/N:WD-1, FW:82.00A82, 4.00 TB", "SMARTD_FAILTYPE=CurrentPendingSector",
		"SMARTD_MESSAGE=Device: /dev/sda [SAT], 8 Currently unreadable (pending) sectors",
		"SMARTD_TFIRST=Tue Dec  1 04:11:40 2026 UTC", "SMARTD_TFIRSTEPOCH=1796098300", "SMARTD_PREVCNT=0", "SMARTD_NEXTDAYS=1",
	}
	out = []byte(runs(t, s.command(t, env, "/bin/sh", filepath.Join(programs, "usr/share/smartmontools/smartd_warning.sh")), 0))
	if len(out) > 0 {
		t.Errorf("smartd would log %s", out)
	}
	s.shows(t, try.nextOutput(t))
	s.try.phone.program.Await(t, `\| .*WDC WD40EFRX`)
}

// mdadm calls the program about an array that is not there.
func mdadm(t *testing.T, try *trial) {
	s := try.server(t)
	monitor := filepath.Join(recipePrograms(t), "sbin/mdadm")
	s.write(t, "etc/mdadm/mdadm.conf", "HOMEHOST <system>\n", 0o644)
	s.write(t, "proc/mdstat", "Personalities : [raid1]\nunused devices: <none>\n", 0o444)
	s.setUp(t, try.next(t))
	runs(t, s.command(t, nil, monitor, "--monitor", "--oneshot", "--config="+s.path("etc/mdadm/mdadm.conf"), "/dev/md7"), 0)
	s.shows(t, try.nextOutput(t))
	for event, pages := range map[string]bool{"Fail": true, "TestMessage": true, "RebuildStarted": false, "Rebuild20": false, "NewArray": false} {
		runs(t, s.command(t, nil, s.path("usr/local/sbin/mdadm-page"), event, "/dev/"+event, "/dev/sdb1"), 0)
		if pages {
			s.try.phone.program.Await(t, "mdadm /dev/"+event+" on .*: "+event+" /dev/sdb1")
		}
	}
	if shown := try.phone.program.Output(); strings.Contains(shown, "/dev/Rebuild") || strings.Contains(shown, "/dev/NewArray") {
		t.Errorf("the phone shows\n%s", shown)
	}
}

// apcupsd's own script calls ours; the UPS is played.
func apcupsd(t *testing.T, try *trial) {
	s := try.server(t)
	s.setUp(t, try.next(t))
	control, err := os.ReadFile(filepath.Join(recipePrograms(t), "etc/apcupsd/apccontrol"))
	if err != nil {
		t.Fatal(err)
	}
	s.stub(t, "wall", "cat >/dev/null\n")
	s.write(t, "etc/apcupsd/apccontrol", s.inside(string(control)), 0o755)
	for _, event := range []string{"onbattery", "offbattery"} {
		// The name, whether it is connected, whether there is power.
		runs(t, s.command(t, nil, s.path("etc/apcupsd/apccontrol"), event, "rack1", "1", "0"), 0)
		s.shows(t, try.nextOutput(t))
	}
}

func unattendedUpgrades(t *testing.T, try *trial) {
	s := try.server(t)
	s.stub(t, "unattended-upgrade", "test \"$*\" = -v && echo 'Lock file is already taken, exiting' >&2\nexit 1\n")
	s.setUp(t, try.next(t))
	read := []string{"APT_CONFIG=" + s.path("etc/apt/apt.conf.d/99-upgrade-from-cron")}
	if out := runs(t, s.command(t, read, "apt-config", "dump", "APT::Periodic::Unattended-Upgrade"), 0); !strings.Contains(out, `"0"`) {
		t.Errorf("apt reads %s", out)
	}
	s.cron(t, "unattended-upgrades", 1)
	s.shows(t, try.nextOutput(t))
	s.try.phone.program.Await(t, `\| Lock file is already taken, exiting`)
	s.stub(t, "unattended-upgrade", "exit 0\n")
	s.cron(t, "unattended-upgrades", 0)
}

// document parses the section's next block, which is YAML, into v, which has all of its members.
func (try *trial) document(t *testing.T, v any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(try.take(t, "yaml").text))
	decoder.KnownFields(true)
	if err := decoder.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func githubActions(t *testing.T, try *trial) {
	s := try.server(t)
	var workflow struct {
		Name string
		On   struct{ Schedule []struct{ Cron string } }
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct {
				Name, Uses, Run, If string
				Env                 map[string]string
			}
		}
	}
	try.document(t, &workflow)
	devices, err := os.ReadFile(s.path("etc/sealpush/devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	relayURL, err := os.ReadFile(s.path("etc/sealpush/relay-url"))
	if err != nil {
		t.Fatal(err)
	}
	contexts := map[string]string{
		"secrets.SEALPUSH_DEVICES": string(devices), "secrets.SEALPUSH_RELAY_URL": strings.TrimSpace(string(relayURL)),
		"runner.temp": t.TempDir(), "github.workflow": workflow.Name, "github.job": "backup",
		"github.server_url": "https://github.example", "github.repository": "octo/site", "github.run_id": "16",
	}
	steps := workflow.Jobs["backup"].Steps
	page := steps[len(steps)-1]
	if page.If != "failure()" {
		t.Errorf("the step runs if %q", page.If)
	}
	env := []string{"SEALPUSH_CONFIG="}
	for name, value := range page.Env {
		value = regexp.MustCompile(`\$\{\{ ([\w.]+) \}\}`).ReplaceAllStringFunc(value, func(expression string) string {
			name := strings.Trim(expression, "${} ")
			if _, known := contexts[name]; !known {
				t.Errorf("there is no %s", name)
			}
			return contexts[name]
		})
		env = append(env, name+"="+value)
	}
	s.stub(t, "go", `case "$*" in
"env GOPATH") echo "`+t.TempDir()+`" ;;
"install github.com/sealpush/sealpush/cmd/sealpush@latest") mkdir -p "$(go env GOPATH)/bin" && cp "$(command -v sealpush)" "$(go env GOPATH)/bin" ;;
*) exit 1 ;;
esac
`)
	// How GitHub runs a step without a shell of its own.
	script := filepath.Join(t.TempDir(), "step")
	if err := os.WriteFile(script, []byte(page.Run), 0o644); err != nil {
		t.Fatal(err)
	}
	runs(t, s.command(t, env, "bash", "-e", script), 0)
	s.shows(t, try.nextOutput(t))
	info, err := os.Stat(filepath.Join(contexts["runner.temp"], "devices.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the registry has mode %v, %v", info.Mode(), err)
	}
}

func gitlabCI(t *testing.T, try *trial) {
	s := try.server(t)
	var jobs map[string]struct {
		Script      []string
		AfterScript []string `yaml:"after_script"`
	}
	try.document(t, &jobs)
	relayURL, err := os.ReadFile(s.path("etc/sealpush/relay-url"))
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{"success", "failed"} {
		env := []string{
			"SEALPUSH_CONFIG=", "SEALPUSH_RELAY_URL=" + strings.TrimSpace(string(relayURL)), "SEALPUSH_REGISTRY=" + s.path("etc/sealpush/devices.json"),
			"CI_JOB_STATUS=" + status, "CI_JOB_NAME=backup", "CI_PROJECT_PATH=octo/site", "CI_JOB_URL=https://gitlab.example/octo/site/-/jobs/7",
		}
		runs(t, s.command(t, env, "bash", "-eo", "pipefail", "-c", strings.Join(jobs["backup"].AfterScript, "\n")), 0)
		if status == "success" && strings.Contains(try.phone.program.Output(), "gitlab.example") {
			t.Error("a job that ended well has paged")
		}
	}
	s.shows(t, try.nextOutput(t))
}

// The Secret is made by a kubectl that is played, and mounted as the kubelet does: as links.
func kubernetes(t *testing.T, try *trial) {
	s := try.server(t)
	image := try.take(t, "dockerfile")
	tool := "/usr/local/bin/sealpush"
	if !strings.HasSuffix(image.text, "COPY --from=sealpush /go/bin/sealpush "+filepath.Dir(tool)+"/\n") {
		t.Errorf("the image has no %s:\n%s", tool, image.text)
	}
	mount := t.TempDir()
	s.stub(t, "kubectl", `test "$1 $2 $3 $4" = "create secret generic sealpush"
shift 4
mkdir -p "`+mount+`/..data"
for argument; do
  name=${argument#--from-file=}; file=${name#*=}; name=${name%%=*}
  cp "$file" "`+mount+`/..data/$name"
  ln -s "..data/$name" "`+mount+`/$name"
done
`)
	s.setUp(t, try.next(t))
	manifest := try.take(t, "yaml")
	// Whatever else the API knows is not its test's business.
	var job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers []struct {
								Command, Args []string
								Env           []struct {
									Name, Value string
									ValueFrom   map[string]map[string]string `yaml:"valueFrom"`
								}
								VolumeMounts []struct {
									Name      string
									MountPath string `yaml:"mountPath"`
								} `yaml:"volumeMounts"`
							}
							Volumes []struct {
								Name   string
								Secret struct {
									SecretName  string `yaml:"secretName"`
									DefaultMode int    `yaml:"defaultMode"`
								}
							}
						}
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	if err := yaml.Unmarshal([]byte(manifest.text), &job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	container, volume := pod.Containers[0], pod.Volumes[0]
	if job.APIVersion != "batch/v1" || job.Kind != "CronJob" || volume.Secret.SecretName != "sealpush" || volume.Secret.DefaultMode != 0o440 ||
		volume.Name != container.VolumeMounts[0].Name || container.Command[0] != tool {
		t.Errorf("the manifest says %+v", job)
	}
	env := []string{"SEALPUSH_CONFIG="}
	for _, variable := range container.Env {
		value := strings.Replace(variable.Value, container.VolumeMounts[0].MountPath, mount, 1)
		if variable.ValueFrom["fieldRef"]["fieldPath"] == "metadata.namespace" {
			value = "shop"
		}
		env = append(env, variable.Name+"="+value)
	}
	s.stub(t, "report", "test \"$*\" = --yesterday && exit 3\n")
	runs(t, s.command(t, env, slices.Concat([]string{s.path(tool)}, container.Command[1:], container.Args)...), 3)
	s.shows(t, try.nextOutput(t))
}

// The blocks of Go run in the integrations' own tests: a test in docs sees to that.
func inAGoProgram(t *testing.T, try *trial) {
	for len(try.blocks) > 0 {
		try.take(t, "go")
	}
}
