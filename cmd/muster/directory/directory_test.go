package directory_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/directory"
	"muster/cmd/muster/directory/directorytest"
)

func service(t *testing.T, h http.Handler, token string) directory.Service {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "secrets", "acme"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return directory.New(directory.Config{URL: srv.URL, Credentials: "acme"}, data)
}

var ann = &board.Agent{ID: "ag-aaaaaaaaaaaa", Org: "acme", Key: "card/web-1/implementer", Generation: 1, Name: "web-1.implementer", Ending: 7}

// AGT-19, AGT-20: a word's key is the same whoever says it and however often, and no other word's.
func TestKeys(t *testing.T) {
	later, next := *ann, *ann
	later.Ending, next.Generation, next.ID = 8, 2, "ag-bbbbbbbbbbbb"
	seen := map[string]bool{}
	for _, k := range []string{directory.DeclareKey(ann), directory.DeclareKey(&next), directory.EndKey(ann), directory.EndKey(&later), directory.EndKey(&next)} {
		if len(k) != 64 || seen[k] {
			t.Errorf("key %q", k)
		}
		seen[k] = true
	}
	again := *ann
	if again.Declared = 5; directory.DeclareKey(&again) != directory.DeclareKey(ann) || directory.DeclarationOf(&again).Key != directory.DeclareKey(ann) {
		t.Error("the same word has another key")
	}
}

// docs/directory.md: what a directory may answer, and what it means.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   string // of the error; "" taken
		kind   any
	}{
		{200, `{}`, "", nil},
		{201, `{"id":"ag-aaaaaaaaaaaa"}`, "", nil},
		{204, ``, "", nil},
		{409, `{"id":"ag-aaaaaaaaaaaa"}`, "", nil},
		{200, `{"id":"ag-cccccccccccc"}`, "another agent", new(*directory.Refused)},
		{409, `{"id":"ag-cccccccccccc"}`, "409", new(*directory.Refused)},
		{422, `{"error":"no\u001bmore"}`, "422 Unprocessable Entity: no more", new(*directory.Refused)},
		{404, `{"agent":"ag-aaaaaaaaaaaa"}`, "does not know ag-aaaaaaaaaaaa", new(*directory.Unknown)},
		{404, `gone`, "404", nil},
		{401, ``, "401", nil},
		{307, ``, "redirects are not followed", nil},
		{503, ``, "503", nil},
	} {
		s := service(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/other")
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}), "secret-token")
		err := s.Declare(t.Context(), directory.DeclarationOf(ann))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d %s: %v, want %q", tc.status, tc.body, err, tc.want)
		}
		var r *directory.Refused
		var u *directory.Unknown
		_, refused := tc.kind.(**directory.Refused)
		_, unknown := tc.kind.(**directory.Unknown)
		if errors.As(err, &r) != refused || errors.As(err, &u) != unknown {
			t.Errorf("%d %s is %T", tc.status, tc.body, err)
		}
	}
}

// AGT-19: a directory that does not answer ends the call when its time is up; what could not be said is an error, never taken for said.
func TestSlowAndCut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := service(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the caller goes
		cancel()
		<-r.Context().Done()
	}), "secret-token")
	if err := s.End(ctx, directory.EndOf(ann)); err == nil {
		t.Error("what nobody answered was taken for said")
	}
	if h, ok := s.(*directory.HTTP); !ok || h.Limit() != directory.Timeout {
		t.Errorf("a call may take %v", h.Limit())
	}
	cut := service(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}), "secret-token")
	if err := cut.Declare(t.Context(), directory.DeclarationOf(ann)); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("an answer that broke off: %v", err)
	}
}

// M-28: the credentials are read from a file that only its owner reads, at each call, and stand in no error.
func TestCredentials(t *testing.T) {
	d := directorytest.New("secret-token")
	srv := httptest.NewServer(d)
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "token")
	s := directory.New(directory.Config{URL: srv.URL, Credentials: file}, "")
	try := func(text string, mode os.FileMode) error {
		t.Helper()
		if text != "" {
			_ = os.Remove(file)
			if err := os.WriteFile(file, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
		}
		return s.Declare(t.Context(), directory.DeclarationOf(ann))
	}
	for _, x := range [][2]string{{"", "cannot be read"}, {"two words", "holds no token"}, {"wrong-token", "401"}} {
		text, want := x[0], x[1]
		if err := try(text, 0o600); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong-token") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := try("secret-token", 0o644); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others read: %v", err)
	}
	if err := try("secret-token\n", 0o600); err != nil {
		t.Error(err)
	}
	if got := d.Log(); len(got) != 1 || got[0] != "declare "+ann.ID {
		t.Errorf("took effect: %v", got)
	}
}

// What a machine's file may say of a directory.
func TestConfig(t *testing.T) {
	for c, ok := range map[directory.Config]bool{
		{}: true, {URL: "https://x.example/a", Credentials: "f"}: true, {URL: "http://127.0.0.1:1", Credentials: "f"}: true,
		{URL: "http://x.example", Credentials: "f"}: false, {URL: "https://u:p@x.example", Credentials: "f"}: false,
		{URL: "https://x.example?a=b", Credentials: "f"}: false, {URL: "https://x.example"}: false, {Credentials: "f"}: false, {URL: "x", Credentials: "f"}: false,
	} {
		if err := c.Check(); (err == nil) != ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, ok := directory.New(directory.Config{}, "").(directory.Fleet); !ok {
		t.Error("without a url the fleet is not the directory")
	}
}
