package raftstore

import "flag"

// Long forms of these tests, for `make prove-1`.
var (
	seed  = flag.Int64("raftstore.seed", 1, "seed of random faults")
	flips = flag.Int("raftstore.flips", 15, "bits to flip in a state file")
	kills = flag.Int("raftstore.kills", 3, "kill -9 of a child process")
	cuts  = flag.Int("raftstore.cuts", 2, "power cuts of a whole store")
	runs  = flag.Int("raftstore.runs", 8, "fault histories in fake time")
)
