package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"

	"muster/board"
)

const backupType = "application/vnd.muster.backup"

// HeaderHash tells of which state a backup is: hash and Seq.
const HeaderHash = "Muster-State"

// backup gives the whole state as one file, to managers. The state is read into a
// file without a name first: no reading of it waits for the caller's network.
func (h *handler) backup(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err == nil {
		err = h.manages(r, &c, "a backup: it holds every board")
	}
	if err == nil {
		err = h.transfers.take()
	}
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	defer h.transfers.give() // when it was sent: until then it takes room on the disk
	f, state, err := h.backupFile(r)
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	w.Header().Set("Content-Type", backupType)
	w.Header().Set(HeaderHash, state)
	sendFile(w, f)
}

func (h *handler) backupFile(r *http.Request) (*os.File, string, error) {
	if r.URL.Query().Get("local") != "true" {
		if err := h.upToDate(r); err != nil {
			return nil, "", err
		}
	}
	f, err := os.CreateTemp(h.b.Info().Data, ".backup-") // on the disk that holds the state: a temporary folder may be memory
	if err != nil {
		return nil, "", fmt.Errorf("backup: %w", err)
	}
	_ = os.Remove(f.Name()) // nothing is left behind, whatever happens
	state, err := h.b.Backup(r.Context(), f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, state, nil
}

// upToDate waits until this node has all that was acknowledged before, through the leader: as long as the caller has
// patience, for without a quorum nobody says when there will be a leader again.
func (h *handler) upToDate(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	_, err := h.b.Read(ctx, true, func(board.View) error { return nil })
	if err == nil || r.Context().Err() != nil {
		return err
	}
	return board.Errorf(board.Unavailable, "no backup was made: no leader answers (%v)", err).WithCheck("no_leader").
		WithHint("what this node has, without asking a leader: muster backup --local FILE; see: muster status")
}

// manages refuses whoever is not a manager; what says what only they may do.
func (h *handler) manages(r *http.Request, c *caller, what string) error {
	refused := board.Errorf(board.Refused, "only a manager takes %s", what).WithCheck(board.CheckRole).WithHint("see: muster token create --role manager")
	switch h.door {
	case DoorSession:
		return refused
	case DoorToken:
		if err := h.knowToken(r.Context(), c); err != nil {
			return err
		}
		if c.role != "manager" || c.board != "" {
			return refused
		}
		return nil
	}
	return h.look(r.Context(), func(v board.View) error {
		if n := board.GetNode(v, c.actor.Node); n != nil && n.SocketRole() != "manager" {
			return refused
		}
		return nil
	})
}

// Backup copies the whole state to w, and holds it against its own hash: what is
// cut off or changed on the way is an error. size is what is to come, 0 when it is
// not known; state tells of which state it is.
func (c *Client) Backup(ctx context.Context, local bool, w io.Writer, begun func(size int64)) (state string, n int64, err error) {
	res, err := c.large(ctx, http.MethodGet, "/v1/backup?local="+strconv.FormatBool(local), nil)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != backupType {
		_, err := answer(res)
		return "", 0, err
	}
	begun(max(res.ContentLength, 0))
	kept := &sink{w: w}
	t := &tailHash{w: kept, sum: sha256.New()}
	n, err = io.Copy(t, res.Body)
	if err == nil {
		err = t.check()
	}
	if kept.failed != nil {
		return "", n, fmt.Errorf("the backup is not whole: %w", kept.failed)
	}
	if err != nil {
		return "", n, board.Errorf(board.Unavailable, "the node broke off: the backup is not whole (%v)", err).WithHint("nothing was kept; try again, see: muster status")
	}
	return res.Header.Get(HeaderHash), n, nil
}

// sink remembers why nothing more could be written: the reader of a stream takes that for the stream's end.
type sink struct {
	w      io.Writer
	failed error
}

// Write implements io.Writer.
func (s *sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil {
		s.failed = err
	}
	return n, err
}

// tailHash passes a stream on and holds it against the SHA-256 at its end.
type tailHash struct {
	w    io.Writer
	sum  hash.Hash
	tail []byte
}

// Write implements io.Writer.
func (t *tailHash) Write(b []byte) (int, error) {
	if _, err := t.w.Write(b); err != nil {
		return 0, err
	}
	t.tail = append(t.tail, b...)
	if n := len(t.tail) - sha256.Size; n > 0 {
		t.sum.Write(t.tail[:n])
		t.tail = append(t.tail[:0], t.tail[n:]...)
	}
	return len(b), nil
}

func (t *tailHash) check() error {
	if string(t.tail) != string(t.sum.Sum(nil)) {
		return fmt.Errorf("its hash is not the one at its end")
	}
	return nil
}
