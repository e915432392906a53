package raftstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const markerFile = "state.mark"

// marker is the small synced file beside the state. The state is written
// without sync, so after a crash of the machine it may be anything; whether
// there was one is told by the boot that stands here.
type marker struct {
	Server string `json:"server"` // Raft server id: the store the state belongs to
	Boot   string `json:"boot"`   // boot id of the machine while the state is open
	Open   bool   `json:"open"`
	// Suspect: damage was met while it was open; the next start reads everything.
	Suspect bool `json:"suspect,omitempty"`
	// Free is the checksum of the list of free pages in a closed state, 0 if it has none: bbolt has no checksum of
	// its own, and a wrong list gives pages in use away.
	Free uint32 `json:"free,omitempty"`
}

// closed tells that state and log were synced and closed in order by this
// store, so that a start need not read all of them first; up that at least the
// machine has not gone down since, so that the log is what was synced.
func (m marker) closed(err error, server string) bool {
	return err == nil && m.Server == server && !m.Suspect && !m.Open
}

func (m marker) up(err error, server, boot string) bool {
	return m.closed(err, server) || err == nil && m.Server == server && !m.Suspect && boot != "" && m.Boot == boot
}

func readMarker(dir string) (m marker, err error) {
	b, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", markerFile, err)
	}
	return m, nil
}

// trust tells whether the state beside the marker may be used: "" or why not.
func (m marker) trust(err error, server, boot string) string {
	switch {
	case err != nil:
		return fmt.Sprintf("its marker cannot be read (%v)", err)
	case m.Server != server:
		return fmt.Sprintf("it belongs to another store (%s)", m.Server)
	case m.Open && (boot == "" || m.Boot != boot):
		return "the machine went down while it was open"
	}
	return ""
}

// write puts the marker on the disk: whole, under its name, before it returns.
func (m marker) write(dir string, fault func(string) error) error {
	if err := fault("marker-write"); err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, markerFile+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, markerFile)); err != nil {
		return err
	}
	return syncDir(dir)
}
