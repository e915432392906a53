package raftstore

import "flag"

// Long forms of these tests, for `make prove-1`.
var (
	seed  = flag.Int64("raftstore.seed", 1, "seed of random faults")
	flips = flag.Int("raftstore.flips", 25, "bits to flip in a state file")
	runs  = flag.Int("raftstore.runs", 4, "fault histories in fake time")
)
