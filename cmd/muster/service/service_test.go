package service

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// odd is a node whose words mean something to systemd, to XML and to a shell.
func odd() Spec {
	return Spec{Binary: "/opt/my tools/muster", Data: `/srv/100% "a"\b`, Args: []string{"--label", "price=$5", "--name", "a<b>&c"}, Path: "/usr/bin:/home/ann/.local/bin", Name: "muster", Home: "/home/ann"}
}

// words reads a command line as systemd does: quotes, then specifiers and variables.
func words(line string) (list []string) {
	for rest := line; rest != ""; {
		rest = strings.TrimPrefix(rest, " ")
		if !strings.HasPrefix(rest, `"`) {
			return append(list, "not quoted: "+rest)
		}
		var w strings.Builder
		i := 1
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' {
				i++
			}
			w.WriteByte(rest[i])
		}
		list, rest = append(list, strings.NewReplacer("%%", "%", "$$", "$").Replace(w.String())), rest[i+1:]
	}
	return list
}

// TestUnitLeavesSessionsAlone: systemd ends the node and nothing else, and starts exactly what was meant.
func TestUnitLeavesSessionsAlone(t *testing.T) {
	s := odd()
	for _, system := range []bool{false, true} {
		if s.System = system; system {
			s.User = "ann"
		}
		unit := s.Unit()
		lines := strings.Split(unit, "\n")
		for _, want := range []string{"KillMode=process", "OOMPolicy=continue", "Delegate=yes", "DelegateSubgroup=muster-node", "Restart=on-failure", "StartLimitIntervalSec=0"} {
			if !slices.Contains(lines, want) {
				t.Errorf("no %s in\n%s", want, unit)
			}
		}
		if got := slices.Contains(lines, "User=ann"); got != system {
			t.Errorf("a user is named: %v, system: %v", got, system)
		}
		want := map[bool]string{false: "WantedBy=default.target", true: "WantedBy=multi-user.target"}[system]
		if !slices.Contains(lines, want) {
			t.Errorf("no %s", want)
		}
		for _, l := range lines {
			if rest, ok := strings.CutPrefix(l, "ExecStart="); ok {
				if got := words(rest); !slices.Equal(got, s.command()) {
					t.Errorf("it starts %q, want %q", got, s.command())
				}
			}
		}
		if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
			good := s
			good.Binary = "/bin/true"
			file := filepath.Join(t.TempDir(), "muster.service")
			if err := os.WriteFile(file, []byte(good.Unit()), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil && strings.Contains(string(out), "muster.service") {
				t.Errorf("systemd says: %s", out)
			}
		}
	}
}

// TestPlistLeavesSessionsAlone: launchd's file is well formed, and says the same.
func TestPlistLeavesSessionsAlone(t *testing.T) {
	s := odd()
	text := s.Plist()
	var strs []string
	key, abandons := "", false
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "key", "string":
			var x string
			if err := d.DecodeElement(&x, &e); err != nil {
				t.Fatal(err)
			}
			if e.Name.Local == "key" {
				key = x
			} else if key == "ProgramArguments" {
				strs = append(strs, x)
			}
		case "true":
			abandons = abandons || key == "AbandonProcessGroup"
		}
	}
	if !slices.Equal(strs, s.command()) {
		t.Errorf("it starts %q, want %q", strs, s.command())
	}
	if !abandons {
		t.Errorf("sessions end with the node:\n%s", text)
	}
}

// machine is a manager of services that does what it is told.
type machine struct {
	said   []string
	refuse string // the verb it refuses
	state  string
}

func (m *machine) run(_ context.Context, name string, args ...string) (string, error) {
	line := name + " " + strings.Join(args, " ")
	m.said = append(m.said, line)
	if m.refuse != "" && slices.Contains(args, m.refuse) {
		return "", errors.New(line + ": no bus")
	}
	switch {
	case slices.Contains(args, "show"):
		return m.state, nil
	case slices.Contains(args, "show-user"):
		return "Linger=no\n", nil
	case slices.Contains(args, "restart"), slices.Contains(args, "enable"):
		m.state = "ActiveState=active\nUnitFileState=enabled\nMainPID=42\n"
	case slices.Contains(args, "print"):
		return "\tstate = running\n\tpid = 77\n", nil
	}
	return "", nil
}

func TestInstallUninstallStatus(t *testing.T) {
	x := &machine{state: "ActiveState=inactive\nUnitFileState=disabled\nMainPID=0\n"}
	m := &Manager{OS: "linux", UID: 1000, Home: t.TempDir(), Run: x.run}
	s := odd()
	if st, err := m.Status(t.Context(), s); err != nil || st.Installed {
		t.Fatalf("%+v, %v", st, err)
	}
	if err := m.Install(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	want := []string{"systemctl --user daemon-reload", "systemctl --user enable muster.service", "systemctl --user restart muster.service"}
	if !slices.Equal(x.said, want) {
		t.Errorf("%q", x.said)
	}
	st, err := m.Status(t.Context(), s)
	if err != nil || !st.Installed || !st.Enabled || st.Active != "active" || st.PID != "42" || st.Linger != "no" {
		t.Errorf("%+v, %v", st, err)
	}
	if raw, err := os.ReadFile(st.File); err != nil || string(raw) != s.Unit() {
		t.Errorf("%v: %s", err, raw)
	}
	x.said = nil
	if err := m.Uninstall(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := []string{"systemctl --user disable --now muster.service", "systemctl --user daemon-reload"}; !slices.Equal(x.said, want) {
		t.Errorf("%q", x.said)
	}
	if _, err := os.Stat(st.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	x.said = nil
	if err := m.Uninstall(t.Context(), s); err != nil || len(x.said) > 0 {
		t.Errorf("once more: %v, %q", err, x.said)
	}
}

// TestFailedInstallIsTakenBack: a manager that refuses leaves what was there before.
func TestFailedInstallIsTakenBack(t *testing.T) {
	for _, refuse := range []string{"daemon-reload", "enable", "restart"} {
		x := &machine{}
		m := &Manager{OS: "linux", UID: 1000, Home: t.TempDir(), Run: x.run}
		s := odd()
		x.refuse = refuse
		if err := m.Install(t.Context(), s, true); err == nil || !strings.Contains(err.Error(), "no bus") {
			t.Errorf("%s: %v", refuse, err)
		}
		if _, err := os.Stat(m.File(s)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a file is left: %v", refuse, err)
		}
		x.refuse = ""
		if err := m.Install(t.Context(), s, true); err != nil {
			t.Fatal(err)
		}
		x.refuse = refuse
		changed := s
		changed.Args = nil
		if err := m.Install(t.Context(), changed, true); err == nil {
			t.Errorf("%s: a second install is taken for done", refuse)
		}
		if raw, err := os.ReadFile(m.File(s)); err != nil || string(raw) != s.Unit() {
			t.Errorf("%s: the service is not what it was: %v", refuse, err)
		}
	}
}

func TestLaunchd(t *testing.T) {
	x := &machine{}
	m := &Manager{OS: "darwin", UID: 501, Home: t.TempDir(), Run: x.run}
	s := odd()
	s.Name = "org.muster.node"
	if err := m.Install(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.Home, "Library", "LaunchAgents", "org.muster.node.plist")
	if want := []string{"launchctl bootstrap gui/501 " + file}; !slices.Equal(x.said, want) {
		t.Errorf("%q", x.said)
	}
	if st, err := m.Status(t.Context(), s); err != nil || st.Active != "active" || st.PID != "77" || st.File != file {
		t.Errorf("%+v, %v", st, err)
	}
	if err := m.Uninstall(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestWhoMayInstall(t *testing.T) {
	x := &machine{}
	s := odd()
	s.System, s.User = true, "ann"
	if err := (&Manager{OS: "linux", UID: 1000, Home: t.TempDir(), Run: x.run}).Install(t.Context(), s, true); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("somebody installs for the system: %v", err)
	}
	if err := (&Manager{OS: "plan9", UID: 1000, Home: t.TempDir(), Run: x.run}).Install(t.Context(), odd(), true); err == nil {
		t.Error("installed where there is no manager")
	}
	if len(x.said) > 0 {
		t.Errorf("%q", x.said)
	}
	root := &Manager{OS: "linux", Root: t.TempDir(), Run: x.run}
	if err := root.Install(t.Context(), s, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"systemctl daemon-reload", "systemctl enable muster.service"}; !slices.Equal(x.said, want) {
		t.Errorf("%q", x.said)
	}
}
