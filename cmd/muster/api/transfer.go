package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"muster/board"
)

const (
	exportType = "application/vnd.muster.board"
	pieceTime  = time.Minute // for one piece of a file to come or go
	sliceTime  = 30 * time.Second
	oneFile    = 4 // files that a node reads or writes at a time
)

// export gives a board as one file. The state is read in one go into a file
// without a name, and no reader of it waits for the caller's network.
func (h *handler) export(w http.ResponseWriter, r *http.Request) {
	c, err := h.mayExport(r)
	if err == nil {
		err = h.transfers.take()
	}
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	defer h.transfers.give() // when it was sent: until then it takes room on the disk
	f, err := h.exportFile(r)
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", exportType)
	sendFile(w, f)
}

// sendFile sends a file piece by piece, each in its own time: nobody has to take all of it soon.
func sendFile(w http.ResponseWriter, f *os.File) {
	rc := http.NewResponseController(w)
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		_ = rc.SetWriteDeadline(time.Now().Add(pieceTime))
		if _, werr := w.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

// mayExport says who asks for a board's file, and why they may not.
func (h *handler) mayExport(r *http.Request) (caller, error) {
	c, err := h.caller(r)
	if err == nil {
		err = h.mayRead(r, &c)
	}
	if err == nil {
		err = asks{"live": truth}.check(r)
	}
	switch {
	case err != nil:
		return c, err
	case c.run != "":
		return c, board.Errorf(board.Refused, "a session exports no boards").WithCheck(board.CheckRole)
	}
	return c, c.sees(r.PathValue("slug"))
}

func (h *handler) exportFile(r *http.Request) (*os.File, error) {
	f, err := os.CreateTemp("", "muster-export")
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	_ = os.Remove(f.Name()) // nothing is left behind, whatever happens
	export := board.Export
	if r.URL.Query().Get("live") == "true" {
		export = board.ExportLive
	}
	sum, lines, out := sha256.New(), 0, bufio.NewWriterSize(f, 256<<10)
	_, err = h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		return export(v, b, func(line []byte) error {
			line = append(line, '\n')
			sum.Write(line)
			lines++
			_, err := out.Write(line)
			return err
		})
	})
	if err == nil {
		_, _ = fmt.Fprintf(out, "{\"end\":{\"lines\":%d,\"sha256\":%q}}\n", lines, hex.EncodeToString(sum.Sum(nil))) // Flush tells
		err = out.Flush()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// slots bounds what is done at a time.
type slots chan struct{}

func (s slots) take() error {
	select {
	case s <- struct{}{}:
		return nil
	default:
		return board.Errorf(board.Unavailable, "%d boards or backups are being written or read here already", cap(s)).WithHint("try again in a moment")
	}
}

func (s slots) give() { <-s }

// imports takes a board's file, and passes it on in slices as it comes: no file
// is ever held whole, and none counts before it has been held against its hash.
func (h *handler) imports(w http.ResponseWriter, r *http.Request) {
	data, index, err := h.importFile(w, r)
	send(w, data, Fresh{Index: index, Age: -1}, err, "")
}

func (h *handler) importFile(w http.ResponseWriter, r *http.Request) (any, uint64, error) {
	c, err := h.caller(r)
	if err == nil && h.door == DoorToken {
		err = h.knowToken(r.Context(), &c)
	}
	if err == nil && c.run != "" {
		err = board.Errorf(board.Refused, "a session imports no boards").WithCheck(board.CheckRole)
	}
	if err != nil {
		h.denied(c, err)
		return nil, 0, err
	}
	if err := h.transfers.take(); err != nil {
		return nil, 0, err
	}
	defer h.transfers.give()
	var token [12]byte
	_, _ = rand.Read(token[:]) // never fails
	x := &importing{h: h, c: c, w: w, as: r.URL.Query().Get("as"), start: r.URL.Query().Get("start") == "true", token: hex.EncodeToString(token[:])}
	res, err := x.run(r.Context(), NewBoardFile(r.Body))
	if err != nil && x.slug != "" { // also when the caller is gone: what lies there is of no use
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), sliceTime)
		defer cancel()
		_ = x.do(ctx, board.VImportEnd, board.ImportEnd{Slug: x.slug, Token: x.token, N: x.n, Drop: true}) // else its due time takes it away
	}
	if err != nil {
		return nil, 0, err
	}
	return res.Data, res.Seq, nil
}

// importing is one file on its way.
type importing struct {
	h         *handler
	c         caller
	w         http.ResponseWriter
	as, token string
	start     bool
	slug      string // "" before the import has begun
	n         int64
}

func (x *importing) run(ctx context.Context, f *BoardFile) (*board.Result, error) {
	x.alive()
	first, err := f.Next()
	if errors.Is(err, io.EOF) {
		return nil, f.bad(1, "the file is empty")
	}
	if err != nil {
		return nil, err
	}
	if onlyText(first) != nil {
		return nil, f.bad(f.Line(), "it holds bytes that are no UTF-8, or half of a surrogate pair")
	}
	head, herr := board.ParseExportHead(first)
	if herr != nil {
		return nil, herr
	}
	res := x.do(ctx, board.VImportBegin, board.ImportBegin{Token: x.token, As: x.as, Head: *head})
	if res.Err != nil {
		return nil, res.Err
	}
	x.slug = orElse(x.as, head.Slug)
	for done := false; !done; {
		var s *board.ImportSlice
		if s, done, err = x.slice(f); err != nil {
			return nil, err
		}
		if len(s.Lines) == 0 {
			continue
		}
		if res := x.do(ctx, board.VImportSlice, s); res.Err != nil {
			return nil, res.Err
		}
		x.n++
	}
	res = x.do(ctx, board.VImportEnd, board.ImportEnd{Slug: x.slug, Token: x.token, N: x.n, Start: x.start})
	if res.Err != nil {
		return nil, res.Err
	}
	return &res, nil
}

// slice reads as many lines as make one slice; done at the end of the file.
func (x *importing) slice(f *BoardFile) (s *board.ImportSlice, done bool, err error) {
	s = &board.ImportSlice{Slug: x.slug, Token: x.token, N: x.n, First: f.Line() + 1}
	size, links := 0, 0
	for len(s.Lines) < board.MaxImportLines && size < board.MaxImportBytes && links < board.MaxImportLinks {
		line, err := f.Next()
		switch {
		case errors.Is(err, io.EOF):
			return s, true, nil
		case err != nil:
			return nil, false, err
		case !json.Valid(line):
			return nil, false, f.bad(f.Line(), "it is no JSON")
		case onlyText(line) != nil:
			return nil, false, f.bad(f.Line(), "it holds bytes that are no UTF-8, or half of a surrogate pair")
		}
		if bytes.HasPrefix(line, []byte(`{"link":`)) {
			links++
		}
		size += len(line)
		s.Lines = append(s.Lines, line)
	}
	return s, false, nil
}

// alive gives the connection time for the next piece.
func (x *importing) alive() {
	rc := http.NewResponseController(x.w)
	_ = rc.SetReadDeadline(time.Now().Add(pieceTime))
	_ = rc.SetWriteDeadline(time.Now().Add(2 * pieceTime))
}

// do asks the leader. A slice has no request id: its number guards it.
func (x *importing) do(ctx context.Context, verb string, args any) board.Result {
	x.alive()
	raw, err := json.Marshal(args)
	if err != nil {
		return board.Result{Err: board.Errorf(board.Internal, "%s: %v", verb, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, sliceTime)
	defer cancel()
	return x.h.b.Do(ctx, board.Request{Actor: x.c.actor, Secret: x.c.secret, Verb: verb, Args: raw})
}

// Export writes a board's file to w, and fails when it did not come whole.
func (c *Client) Export(ctx context.Context, slug string, w io.Writer) (lines int, err error) {
	return c.export(ctx, slug, "", w)
}

// ExportLive is an [Client.Export] of the board as it is in its fleet, through the leader: what was acknowledged is in it.
func (c *Client) ExportLive(ctx context.Context, slug string, w io.Writer) (lines int, err error) {
	return c.export(ctx, slug, "?live=true&consistent=true", w)
}

func (c *Client) export(ctx context.Context, slug, query string, w io.Writer) (lines int, err error) {
	res, err := c.large(ctx, http.MethodGet, "/v1/boards/"+url.PathEscape(slug)+"/export"+query, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != exportType {
		_, err := answer(res)
		return 0, err
	}
	kept := &sink{w: w}
	f := NewBoardFile(io.TeeReader(res.Body, kept))
	for {
		switch _, err := f.Next(); {
		case kept.failed != nil:
			return 0, fmt.Errorf("the file is not whole: %w", kept.failed)
		case errors.Is(err, io.EOF):
			return f.Line(), nil
		case board.CodeOf(err) == board.Invalid:
			return 0, board.Errorf(board.Unavailable, "the node broke off: the file is not whole").WithHint("see: muster status")
		case err != nil:
			return 0, err
		}
	}
}

// Import sends a board's file. The board is paused unless it is to start at once.
func (c *Client) Import(ctx context.Context, as string, start bool, r io.Reader) (*Answer, error) {
	q := url.Values{}
	if as != "" {
		q.Set("as", as)
	}
	if start {
		q.Set("start", "true")
	}
	res, err := c.large(ctx, http.MethodPost, "/v1/import?"+q.Encode(), r)
	if err != nil {
		var lost *lostError
		if errors.As(err, &lost) {
			return nil, board.Errorf(board.UnknownOutcome, "the node broke the connection: the board may or may not be there").WithHint("see: muster board list; what is not whole is taken away")
		}
		return nil, err
	}
	defer res.Body.Close()
	return answer(res)
}

// large is a call whose body or answer may be large: it has no deadline but ctx's;
// the timeout that it tells is of what the node waits for before it begins.
func (c *Client) large(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://muster"+path, body)
	if err != nil {
		return nil, err
	}
	if c.Auth != "" {
		req.Header.Set("Authorization", c.Auth)
	}
	req.Header.Set(HeaderTimeout, c.timeout().String())
	res, err := c.client().Do(req)
	if err != nil {
		return nil, c.failed(ctx, method, err)
	}
	return res, nil
}
