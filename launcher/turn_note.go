package launcher

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// NoteVerb is the hidden verb of the binary that runs [Note].
const NoteVerb = "note"

// Bounds of a hook: it holds its program up.
const (
	maxHook  = 4 << 20 // bytes of its word: a tool's input may hold a file
	noteWait = 2 * time.Second
)

// Note passes the word of a session's hook on to its keeper: the argument, where the program gives one, else what stands
// on standard input. Whoever calls it goes on whatever becomes of it, so a caller should not make a failure of an error.
func Note(args []string, stdin io.Reader) error {
	raw := []byte(nil)
	if len(args) > 0 {
		raw = []byte(args[len(args)-1])
	} else {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(stdin, maxHook)); err != nil {
			return err
		}
	}
	said, ok := turnOf(raw)
	if !ok {
		return nil
	}
	secret := os.Getenv("MUSTER_SECRET_FILE")
	if secret == "" {
		return errors.New("this is no session of a node: MUSTER_SECRET_FILE is not set")
	}
	c, err := dialFolder(filepath.Dir(secret), fileSocket)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(noteWait)); err != nil {
		return err
	}
	if err := writeMessage(c, message{Op: opTurn, Turn: &said}); err != nil {
		return err
	}
	for r := bufio.NewReader(c); ; { // its word is there when this ends: what follows in the session comes later
		m, err := readMessage(r)
		if err != nil || m.Re == opTurn {
			return err
		}
	}
}
