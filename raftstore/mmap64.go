//go:build !(386 || arm || mips || mipsle)

package raftstore

// defaultMmap is address space, not memory: a state below it never waits for its readers to grow.
const defaultMmap = 8 << 30
