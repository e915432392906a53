//go:build 386 || arm || mips || mipsle

package raftstore

const defaultMmap = 256 << 20
