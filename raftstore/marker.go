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
