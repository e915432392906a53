package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// exported is a board's file as the API gives it.
func exported(t *testing.T, c *api.Client, slug string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := c.Export(t.Context(), slug, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// M-01: what is exported on one fleet is imported on another, over the wire; nobody but a manager does that, and no session.
func TestExportAndImportOverTheWire(t *testing.T) {
	c := serve(t, apitest.Story())
	file := exported(t, c, "web")
	f := apitest.New()
	to := serve(t, f)
	x, err := api.Decode[struct {
		Slug, Prefix string
		Paused       bool
		Cards        int
	}](to.Import(t.Context(), "site", false, bytes.NewReader(file)))
	if err != nil || x.Slug != "site" || x.Prefix != "w" || !x.Paused || x.Cards != 1 {
		t.Fatalf("imported %+v: %v", x, err)
	}
	if d, err := api.Decode[api.CardDetail](to.Get(t.Context(), "/v1/cards/w-1", nil)); err != nil || d.Title != "a page" || d.Board != "site" {
		t.Fatalf("card w-1 is %+v (%v)", d, err)
	}
	if list, err := api.Decode[[]api.Event](to.Get(t.Context(), "/v1/events?board=site&since=0", nil)); err != nil || len(list) != 2 || list[0].Kind != "board_imported" || list[1].Kind != "paused" {
		t.Fatalf("the fleet's events: %+v (%v)", list, err)
	}
	if list, err := api.Decode[[]api.Event](to.Get(t.Context(), "/v1/events?card=w-1&since=0", nil)); err != nil || len(list) == 0 || list[0].Kind != "created" {
		t.Fatalf("the card's history: %+v (%v)", list, err)
	}
	if _, err := to.Import(t.Context(), "site", false, bytes.NewReader(file)); !errors.Is(err, &board.Error{Code: board.Conflict}) {
		t.Fatalf("imported twice: %v", err)
	}
	s := session(c, "d-2.1", "s2")
	if _, err := s.Export(t.Context(), "web", io.Discard); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a session exports: %v", err)
	}
	if _, err := s.Import(t.Context(), "x", false, bytes.NewReader(file)); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a session imports: %v", err)
	}
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("looks"), Role: "viewer", TTL: 3600})
	d := door(t, f, "looks")
	if got := exported(t, d, "site"); len(got) == 0 {
		t.Error("a viewer may export what it may read")
	}
	if _, err := d.Import(t.Context(), "x", false, bytes.NewReader(file)); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a viewer imports: %v", err)
	}
	if _, err := c.Export(t.Context(), "nothing", io.Discard); !errors.Is(err, &board.Error{Code: board.NotFound}) {
		t.Errorf("export of no board: %v", err)
	}
}

// finished gives a file its last line.
func finished(lines string) string {
	h := sha256.Sum256([]byte(lines))
	return fmt.Sprintf("%s{\"end\":{\"lines\":%d,\"sha256\":%q}}\n", lines, strings.Count(lines, "\n"), hex.EncodeToString(h[:]))
}

// A file that is cut off, changed, or followed by something is refused with the line, and nothing of it stays.
func TestBrokenFilesAreRefused(t *testing.T) {
	good := string(exported(t, serve(t, apitest.Story()), "default"))
	end := strings.LastIndex(strings.TrimSuffix(good, "\n"), "\n") + 1
	body := good[:end]
	head, _, _ := strings.Cut(body, "\n")
	lines := strings.Count(good, "\n")
	for name, x := range map[string]struct{ file, want string }{
		"empty":            {"", "line 1: the file ends before"},
		"something else":   {"hello\n", "line 1: this is no board's file"},
		"no last line":     {body, fmt.Sprintf("line %d: the file ends before its last line", lines)},
		"cut in a line":    {good[:end-10], fmt.Sprintf("line %d: the file ends before its last line", lines-1)},
		"a letter changed": {strings.Replace(good, `"kind":"created"`, `"kind":"creates"`, 1), fmt.Sprintf("line %d: the file has been changed", lines)},
		"a line missing":   {good[:len(head)+1] + good[strings.Index(good[len(head)+1:], "\n")+len(head)+2:], fmt.Sprintf("line %d: the file has been changed", lines-1)},
		"something behind": {good + "\n", fmt.Sprintf("line %d: something follows", lines+1)},
		"no JSON":          {finished(head + "\n{\n"), "line 2: it is no JSON"},
		"only its end":     {finished(""), "line 1: the file is empty"},
		"a broken end":     {body + `{"end":` + "\n", fmt.Sprintf("line %d: the file's last line cannot be read", lines)},
		"a giant line":     {head + "\n" + strings.Repeat("x", board.MaxImportLine+1), "line 2: it is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			f := apitest.New()
			c := serve(t, f)
			_, err := c.Import(t.Context(), "copy", false, strings.NewReader(x.file))
			if board.CodeOf(err) != board.Invalid || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v, want %q", err, x.want)
			}
			if list, err := api.Decode[[]api.Board](c.Get(t.Context(), "/v1/boards", nil)); err != nil || len(list) != 1 {
				t.Fatalf("boards %+v (%v)", list, err)
			}
		})
	}
}

// forgetful is a fleet that takes slices and forgets them, and looks how far ahead of them the file has been read.
type forgetful struct {
	*apitest.Fleet
	read, passed, ahead, largest int
}

func (s *forgetful) Do(ctx context.Context, req board.Request) board.Result {
	if req.Verb != board.VImportSlice {
		return s.Fleet.Do(ctx, req)
	}
	s.ahead, s.largest = max(s.ahead, s.read-s.passed), max(s.largest, len(req.Args))
	s.passed += len(req.Args)
	return board.Result{}
}

func (s *forgetful) Read(ctx context.Context, consistent bool, fn func(board.View) error) (api.Fresh, error) {
	return s.Fleet.Read(ctx, consistent, fn)
}

// counted counts what was read of it.
type counted struct {
	io.Reader
	n *int
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += n
	return n, err
}

// A file is never held whole: a slice is read when the one before was taken, and slices are small.
func TestALargeFileIsNotHeld(t *testing.T) {
	head, _, _ := strings.Cut(string(exported(t, serve(t, apitest.Story()), "default")), "\n")
	line := fmt.Sprintf(`{"event":{"card":"d-1","id":"1.0","kind":"x","at":1,"actor":{"kind":"person","name":"ann"},"text":%q}}`, strings.Repeat("x", 20_000))
	file := finished(head + "\n" + strings.Repeat(line+"\n", 1000)) // 20 MB
	s := &forgetful{Fleet: apitest.New()}
	req := httptest.NewRequest(http.MethodPost, "/v1/import?as=copy", counted{strings.NewReader(file), &s.read})
	f := api.Handler(s, api.DoorUser, nil)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, req)
	if s.passed < len(file)*9/10 {
		t.Fatalf("%d of %d bytes were passed on: %s", s.passed, len(file), w.Body)
	}
	if most := 2 * board.MaxImportBytes; s.ahead > most || s.largest > most {
		t.Fatalf("%d bytes were read ahead, a slice had %d; want at most %d", s.ahead, s.largest, most)
	}
}

// FuzzBoardFile: no file of any content makes its reader panic or take one for whole that is not.
func FuzzBoardFile(f *testing.F) {
	f.Add([]byte(finished("{\"muster_board\":1}\n{}\n")))
	f.Add([]byte(finished("")))
	f.Add([]byte("{\"end\":"))
	f.Add([]byte("\n\n\n"))
	f.Add([]byte{0xff, '\n', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := api.NewBoardFile(bytes.NewReader(b))
		var all strings.Builder
		for {
			line, err := x.Next()
			if errors.Is(err, io.EOF) {
				h := sha256.Sum256([]byte(all.String()))
				if !bytes.Contains(b, []byte(hex.EncodeToString(h[:]))) {
					t.Fatalf("taken for whole: %q", b)
				}
				return
			}
			if err != nil {
				if board.CodeOf(err) != board.Invalid || !strings.HasPrefix(err.Error(), "line ") {
					t.Fatalf("%v", err)
				}
				return
			}
			all.Write(line)
			all.WriteByte('\n')
		}
	})
}

// heavy is a fleet whose backup is more than a connection holds.
type heavy struct {
	*apitest.Fleet
	dir string
}

func (h heavy) Info() api.Info {
	i := h.Fleet.Info()
	i.Data = h.dir
	return i
}

func (h heavy) Backup(_ context.Context, f *os.File) (string, error) {
	return "hash", f.Truncate(64 << 20)
}

// Who reads slowly keeps their place: so many files lie on the disk at a time, and no more.
func TestSlowReadersAreBounded(t *testing.T) {
	f := apitest.Story()
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("boss"), Role: "manager"})
	srv := httptest.NewServer(api.Handler(heavy{f, t.TempDir()}, api.DoorToken, nil))
	defer srv.Close()
	ask := func() *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/backup", nil)
		req.Header.Set("Authorization", "Bearer boss")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for range 4 {
		res := ask()
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("HTTP %d", res.StatusCode)
		}
	}
	res := ask()
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode == http.StatusOK || !strings.Contains(string(b), "already") {
		t.Errorf("one more: HTTP %d, %.200q", res.StatusCode, b)
	}
}
