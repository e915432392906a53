package doctor

import (
	"slices"
	"testing"
	"time"
)

// healthy is a node of three voters with nothing wrong.
func healthy() Facts {
	return Facts{Version: "v1", Data: "/d", Running: true,
		Folder:  Folder{Exists: true, Mode: 0o700, KeyMode: 0o600, Listen: "10.0.0.1:7000"},
		Machine: Machine{DiskFree: 50 << 30, Sync: 2 * time.Millisecond, MemFree: 8000, MemTotal: 16000},
		Fleet: &Fleet{Self: "atlas", SelfID: "a", SelfVersion: "v1", Leader: "atlas", Quorum: true,
			Nodes: []Node{{ID: "a", Name: "atlas", Addr: "10.0.0.1:7000", State: "online", Version: "v1", Voter: true},
				{ID: "b", Name: "borea", Addr: "10.0.0.2:7000", State: "online", Version: "v1", Voter: true},
				{ID: "c", Name: "cleo", Addr: "10.0.0.3:7000", State: "online", Version: "v1", Voter: true}},
			Peers: []Peer{{ID: "b", Name: "borea", RTT: time.Millisecond}, {ID: "c", Name: "cleo", RTT: time.Millisecond}}}}
}

// Every finding has its code, a way out, and its severity; a healthy node finds nothing.
func TestDiagnose(t *testing.T) {
	one := func(f *Facts) { f.Fleet.Nodes, f.Fleet.Peers = f.Fleet.Nodes[:1], nil }
	for name, tc := range map[string]struct {
		break_ func(*Facts)
		want   []string
	}{
		"healthy":         {func(*Facts) {}, nil},
		"a fleet of one":  {one, nil},
		"no node yet":     {func(f *Facts) { f.Folder, f.Fleet, f.Running = Folder{}, nil, false }, []string{"no_node note"}},
		"stopped":         {func(f *Facts) { f.Fleet, f.Running = nil, false }, []string{"node_stopped note"}},
		"starting":        {func(f *Facts) { f.Fleet, f.Running, f.Folder.Held, f.Folder.PortUsed = nil, false, true, "in use" }, []string{"node_starting note"}},
		"port taken":      {func(f *Facts) { f.Fleet, f.Running, f.Folder.PortUsed = nil, false, "in use" }, []string{"port_taken error", "node_stopped note"}},
		"key readable":    {func(f *Facts) { f.Folder.KeyMode = 0o644 }, []string{"key_open error"}},
		"folder readable": {func(f *Facts) { f.Folder.Mode = 0o755 }, []string{"folder_open warn"}},
		"damaged":         {func(f *Facts) { f.Folder.Faults = []string{"node.json is missing"} }, []string{"folder_damaged error"}},
		"disk full":       {func(f *Facts) { f.Machine.DiskFree = 1 << 20 }, []string{"disk_full error"}},
		"disk low":        {func(f *Facts) { f.Machine.DiskFree = 500 << 20 }, []string{"disk_low warn"}},
		"disk not known":  {func(f *Facts) { f.Machine.DiskFree = -1 }, nil},
		"disk fails":      {func(f *Facts) { f.Machine.SyncErr = "input/output error" }, []string{"disk_fails error"}},
		"disk hangs":      {func(f *Facts) { f.Machine.Sync = 2 * time.Second }, []string{"disk_hangs error"}},
		"disk slow":       {func(f *Facts) { f.Machine.Sync = 200 * time.Millisecond }, []string{"disk_slow warn"}},
		"no tmux":         {func(f *Facts) { f.Machine.Tmux = "none" }, []string{"tmux warn"}},
		"no git":          {func(f *Facts) { f.Machine.Git = "none" }, []string{"git warn"}},
		"no login":        {func(f *Facts) { f.Machine.NoLogin = []string{"codex"} }, []string{"harness_login warn"}},
		"no linger":       {func(f *Facts) { f.Machine.Linger = "no" }, []string{"linger warn"}},
		"no memory":       {func(f *Facts) { f.Machine.MemFree = 300 }, []string{"memory warn"}},
		"removed": {func(f *Facts) {
			f.Fleet.Quorum, f.Fleet.Removed, f.Fleet.Alarms = false, "this machine was removed", []string{"this machine was removed"}
		}, []string{"removed error"}},
		"no quorum": {func(f *Facts) {
			f.Fleet.Quorum, f.Fleet.Alarms = false, []string{"no leader is reachable from here: nothing"}
		}, []string{"no_quorum error"}},
		"two voters":       {func(f *Facts) { f.Fleet.Nodes[2].Voter = false }, []string{"two_voters error"}},
		"one voter of two": {func(f *Facts) { f.Fleet.Nodes[2].Voter, f.Fleet.Nodes[1].Voter = false, false }, []string{"one_voter note"}},
		"a voter is away": {func(f *Facts) {
			f.Fleet.Nodes[2].State, f.Fleet.Peers[1].Err, f.Fleet.Alarms = "offline", "no route", []string{"cleo is offline"}
		}, []string{"voter_away error"}},
		"a voter is not reached": {func(f *Facts) { f.Fleet.Peers[1].Err = "no route" }, []string{"unreachable error"}},
		"a replica is not reached": {func(f *Facts) {
			f.Fleet.Nodes = append(f.Fleet.Nodes, Node{ID: "d", Name: "dione", State: "online", Version: "v1"})
			f.Fleet.Peers = append(f.Fleet.Peers, Peer{ID: "d", Name: "dione", Err: "no route"})
		}, []string{"unreachable warn"}},
		"far voter":           {func(f *Facts) { f.Fleet.Peers[0].RTT = 90 * time.Millisecond }, []string{"latency warn"}},
		"far voter, wan":      {func(f *Facts) { f.Fleet.Peers[0].RTT, f.Fleet.Wan = 90*time.Millisecond, true }, nil},
		"clock off":           {func(f *Facts) { f.Fleet.Peers[0].ClockOff = -10 * time.Second }, []string{"clock warn"}},
		"clock far off":       {func(f *Facts) { f.Fleet.Peers[0].ClockOff = 2 * time.Minute }, []string{"clock error"}},
		"versions":            {func(f *Facts) { f.Fleet.Nodes[2].Version = "v2" }, []string{"versions warn"}},
		"another binary":      {func(f *Facts) { f.Version = "v2" }, []string{"binary warn"}},
		"loopback":            {func(f *Facts) { f.Folder.Listen = "127.0.0.1:7000" }, []string{"loopback error"}},
		"diverged":            {func(f *Facts) { f.Fleet.Alarms = []string{"DIVERGED: the nodes do not agree"} }, []string{"alarm_diverged error"}},
		"sessions on a voter": {func(f *Facts) { f.Fleet.Nodes[0].Running = 2 }, []string{"session_keys note"}},
	} {
		f := healthy()
		tc.break_(&f)
		var got []string
		for _, x := range Diagnose(f) {
			got = append(got, x.Code+" "+x.Severity)
			if x.Fix == "" || x.Text == "" {
				t.Errorf("%s: %s does not say what to do", name, x.Code)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: found %q, want %q", name, got, tc.want)
		}
	}
}
