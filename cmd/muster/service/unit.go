package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

// Spec is one node as a service.
type Spec struct {
	Binary string   // path of muster
	Data   string   // the node's folder
	Args   []string // of up, besides the folder
	Path   string   // PATH of the node, and so of what its sessions run
	System bool     // of the system, not of a user
	User   string   // who a system's service runs as
	Name   string   // of the unit, without its ending
	Home   string   // of that user
}

// command is what the manager starts.
func (s Spec) command() []string {
	return append([]string{s.Binary, "up", "--data", s.Data}, s.Args...)
}

// quoted is a word of a command line in a unit file: its specifiers and
// variables mean themselves.
func quoted(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word) + `"`
}

// value is a text in a setting that is no command line.
func value(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// Unit is the unit file for systemd.
func (s Spec) Unit() string {
	var line []string
	for _, w := range s.command() {
		line = append(line, quoted(w))
	}
	env := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace("PATH="+s.Path) + `"`
	network, user, target := "", "", "default.target"
	if s.System {
		network = "Wants=network-online.target\nAfter=network-online.target\n"
		user = "User=" + value(s.User) + "\nWorkingDirectory=" + value(s.Home) + "\n"
		target = "multi-user.target"
	}
	return `# Written by muster service install; it is written anew by the next one.
[Unit]
Description=muster node in ` + value(s.Data) + "\n" + network + `# A node that cannot start yet (a disk, an address) is tried again and again.
StartLimitIntervalSec=0

[Service]
Type=exec
` + user + "ExecStart=" + strings.Join(line, " ") + "\nEnvironment=" + env + `
# Sessions are the node's children and must outlive it: only the node itself is
# told to stop, and one session that takes too much memory ends alone.
KillMode=process
OOMPolicy=continue
# Each session is in a group of its own beside the node's, and held to its memory there. (Before systemd 254 there is no
# group for the node alone; then sessions are counted by their processes, and none has a limit.)
Delegate=yes
DelegateSubgroup=muster-node
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=` + target + "\n"
}

// Plist is the property list for launchd.
func (s Spec) Plist() string {
	var b strings.Builder
	text := func(x string) string {
		var t strings.Builder
		_ = xml.EscapeText(&t, []byte(x)) // a Builder takes everything
		return t.String()
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`)
	key := func(name, value string) { fmt.Fprintf(&b, "\t<key>%s</key>\n\t%s\n", name, value) }
	str := func(x string) string { return "<string>" + text(x) + "</string>" }
	var args strings.Builder
	for _, w := range s.command() {
		args.WriteString("\n\t\t" + str(w))
	}
	key("Label", str(s.Name))
	key("ProgramArguments", "<array>"+args.String()+"\n\t</array>")
	key("EnvironmentVariables", "<dict>\n\t\t<key>PATH</key>\n\t\t"+str(s.Path)+"\n\t</dict>")
	if s.System {
		key("UserName", str(s.User))
	}
	key("RunAtLoad", "<true/>")
	key("KeepAlive", "<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>")
	b.WriteString("\t<!-- sessions are the node's children and must outlive it -->\n")
	key("AbandonProcessGroup", "<true/>")
	key("ProcessType", str("Interactive"))
	key("StandardOutPath", str(filepath.Join(s.Data, "node.log")))
	key("StandardErrorPath", str(filepath.Join(s.Data, "node.log")))
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}
