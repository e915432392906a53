package launcher

import (
	"errors"
	"syscall"
)

// memLeaf is nothing here: macOS counts no memory of a group and holds none to a limit.
type memLeaf struct{ path string }

func makeMemLeaf(string, string) memLeaf { return memLeaf{} }

func memLeafOf(*Proc) memLeaf { return memLeaf{} }

func (m *memLeaf) bear(start func()) { start() }

// enter says that a session is not held to a limit; 0 is none.
func (m *memLeaf) enter(_ int, limit int64) error {
	if limit > 0 {
		return errors.New("macOS holds no session to a memory limit")
	}
	return nil
}

func (m memLeaf) peak() int64  { return 0 }
func (m memLeaf) kills() int64 { return 0 }
func (m memLeaf) remove()      {}

// memory is not known while it runs.
func (t *tree) memory() int64 { return 0 }

// largest is the most that one process of the tree ever had, in bytes.
func largest() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return u.Maxrss
}
