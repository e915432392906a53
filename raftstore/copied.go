package raftstore

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// mayReturn refuses a folder that is not the one this store last wrote
// (Config.Copied) where others could outvote what it has forgotten: its log may be
// older than what it has promised. Who is the only voter goes on: there is nobody
// else to have what it has lost.
func (s *Store) mayReturn(list []*raft.SnapshotMeta) error {
	if !s.cfg.Copied {
		return nil
	}
	c, err := s.lastConfiguration(list)
	if err != nil {
		return err
	}
	own := false
	for _, v := range c.Servers {
		switch {
		case string(v.ID) == s.cfg.Server:
			own = v.Suffrage == raft.Voter
		case v.Suffrage == raft.Voter:
			return fmt.Errorf("%w, and %d servers make the group: it must not vote again", ErrCopied, len(c.Servers))
		}
	}
	if !own {
		return fmt.Errorf("%w, and this server is no voter in it", ErrCopied)
	}
	s.log.Warn("this folder was copied or put back; it is the only voter, so it goes on with what is in it")
	return nil
}

// lastConfiguration is the newest configuration that state, newest snapshot or log
// hold, before Raft runs.
func (s *Store) lastConfiguration(list []*raft.SnapshotMeta) (raft.Configuration, error) {
	var c raft.Configuration
	from := uint64(0)
	if len(list) > 0 {
		c, from = list[0].Configuration, list[0].Index
	}
	err := s.state.read(func(v *view) error {
		mine, at, ok, err := readConf(v.tx)
		if ok && at >= from {
			c, from = mine, max(at, v.m.Applied)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	first, err := s.logs.FirstIndex()
	if err != nil {
		return c, err
	}
	last, err := s.logs.LastIndex()
	if err != nil {
		return c, err
	}
	for i := max(from+1, first); first > 0 && i <= last; i++ {
		var e raft.Log
		if err := s.logs.GetLog(i, &e); err != nil {
			return c, fmt.Errorf("entry %d: %w", i, err)
		}
		if e.Type == raft.LogConfiguration {
			c = raft.DecodeConfiguration(e.Data)
		}
	}
	return c, nil
}
