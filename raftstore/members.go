package raftstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Server is one member of Raft's configuration.
type Server struct {
	ID    string // node id "/" store id
	Node  string
	Voter bool
}

// Servers is the latest configuration this node knows, voters and replicas.
func (s *Store) Servers() []Server {
	var out []Server
	for _, v := range s.raft.Load().GetConfiguration().Configuration().Servers {
		out = append(out, Server{ID: string(v.ID), Node: nodeOf(string(v.ID)), Voter: v.Suffrage == raft.Voter})
	}
	return out
}

// AddNonvoter adds a replica, on the leader.
func (s *Store) AddNonvoter(ctx context.Context, server string) error {
	r := s.raft.Load()
	return s.member(ctx, "add", server, r.AddNonvoter(raft.ServerID(server), raft.ServerAddress(nodeOf(server)), 0, 0))
}

// AddVoter adds a voter, or makes a replica one, on the leader. The caller
// makes sure that it is reachable and has caught up: a voter that is away
// counts for the majority.
func (s *Store) AddVoter(ctx context.Context, server string) error {
	r := s.raft.Load()
	return s.member(ctx, "promote", server, r.AddVoter(raft.ServerID(server), raft.ServerAddress(nodeOf(server)), 0, 0))
}

// Demote makes a voter a replica, on the leader.
func (s *Store) Demote(ctx context.Context, server string) error {
	return s.member(ctx, "demote", server, s.raft.Load().DemoteVoter(raft.ServerID(server), 0, 0))
}

// RemoveServer removes a voter or replica, on the leader.
func (s *Store) RemoveServer(ctx context.Context, server string) error {
	return s.member(ctx, "remove", server, s.raft.Load().RemoveServer(raft.ServerID(server), 0, 0))
}

func (s *Store) member(ctx context.Context, what, server string, f raft.Future) error {
	err := s.await(ctx, f)
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
		err = ErrNotLeader
	}
	if err != nil {
		return fmt.Errorf("%s server %s: %w", what, server, err)
	}
	return nil
}
