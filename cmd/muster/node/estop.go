package node

import (
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster/board"
)

// estop tells of the file that stops every start here: whose it is, since when,
// and why, as its first line says (M-16).
func (n *Node) estop(r *board.Reading) {
	st, err := os.Stat(n.estopPath())
	if err != nil {
		return
	}
	r.Estop, r.EstopMS = true, max(time.Since(st.ModTime()).Milliseconds(), 1)
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		r.EstopBy = strconv.FormatUint(uint64(sys.Uid), 10)
		if u, err := user.LookupId(r.EstopBy); err == nil {
			r.EstopBy = u.Username
		}
	}
	if !st.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(n.estopPath(), os.O_RDONLY|syscall.O_NONBLOCK, 0) // whatever it is, nobody waits for it
	if err != nil {
		return
	}
	defer f.Close()
	head := make([]byte, 200)
	k, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:k]), "\n")
	r.EstopWhy = strings.ToValidUTF8(strings.TrimSpace(line), "?")
}
