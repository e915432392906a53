package fakemodel

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// apis are a request of each API: what the user said and the tool are put in.
var apis = []struct{ name, path, body, tool string }{
	{"messages", "/v1/messages", `{"model":"m","stream":STREAM,"messages":[{"role":"user","content":[{"type":"text","text":"SAID"}]}],"tools":[{"name":"TOOL"}]}`, "Bash"},
	{"responses", "/v1/responses", `{"model":"m","stream":STREAM,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"SAID"}]}],"tools":[{"type":"function","name":"TOOL"}]}`, "exec_command"},
	{"chat", "/v1/chat/completions", `{"model":"m","stream":STREAM,"messages":[{"role":"user","content":"SAID"}],"tools":[{"type":"function","function":{"name":"TOOL"}}]}`, "bash"},
	{"gemini", "/v1beta/models/m:METHOD", `{"contents":[{"role":"user","parts":[{"text":"SAID"}]}],"tools":[{"functionDeclarations":[{"name":"TOOL"}]}]}`, "run_shell_command"},
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, ctx context.Context, url, body string) (int, string, http.Header) {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b), r.Header
}

// Each API gives the turns of its conversation one by one, as a stream and whole;
// what has no tool for commands takes none.
func TestTurns(t *testing.T) {
	for _, a := range apis {
		for _, stream := range []string{"true", "false"} {
			t.Run(a.name+" stream "+stream, func(t *testing.T) {
				s := start(t)
				resets := time.Now().Add(time.Hour)
				s.Talk("alpha", Turn{Run: "echo one"}, Turn{Limit: &Limit{resets}}, Turn{Status: 503, Say: "down", Times: 2}, Turn{Say: "the end"})
				method := map[string]string{"true": "streamGenerateContent", "false": "generateContent"}[stream]
				body := strings.NewReplacer("STREAM", stream, "SAID", "do alpha", "TOOL", a.tool).Replace(a.body)
				url := s.URL + strings.Replace(a.path, "METHOD", method, 1)
				for i, want := range []struct {
					status int
					text   string
				}{{200, "echo one"}, {429, ""}, {503, "down"}, {503, "down"}, {200, "the end"}, {200, "nothing more to say"}} {
					if i == 1 { // a title for the conversation
						if code, text, _ := post(t, t.Context(), url, strings.Replace(body, a.tool, "other", 1)); code != 200 || !strings.Contains(text, "ok") {
							t.Errorf("aside: %d %s", code, text)
						}
					}
					code, text, header := post(t, t.Context(), url, body)
					if code != want.status || !strings.Contains(text, want.text) {
						t.Errorf("turn %d: %d %s", i, code, text)
					}
					if isStream := header.Get("content-type") == "text/event-stream"; isStream != (stream == "true" && code == 200) {
						t.Errorf("turn %d: a stream is %v", i, isStream)
					}
				}
				asked := s.Asked()
				if len(asked) != 7 || asked[0].Turn != 0 || asked[1].Turn != -1 || asked[0].Word != "alpha" || asked[0].API != a.name || asked[0].Said != "do alpha" {
					t.Errorf("%+v", asked)
				}
			})
		}
	}
}

// An answer that waits is given when it may be; a client that goes away, and the
// end of the server, end it.
func TestAnswerThatWaits(t *testing.T) {
	s := start(t)
	let := make(chan struct{})
	s.Talk("alpha", Turn{Wait: let, Say: "late"}, Turn{Wait: make(chan struct{})}, Turn{Wait: make(chan struct{})})
	body := strings.NewReplacer("STREAM", "false", "SAID", "alpha", "TOOL", "bash").Replace(apis[2].body)
	got := make(chan string)
	ask := func(ctx context.Context) {
		_, text, _ := post(t, ctx, s.URL+apis[2].path, body)
		got <- text
	}
	go ask(t.Context())
	if _, err := s.Await(t.Context(), func(r Request) bool { return r.Turn == 0 }); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-got:
		t.Fatalf("it did not wait: %s", text)
	default:
	}
	close(let)
	if text := <-got; !strings.Contains(text, "late") {
		t.Errorf("%s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go ask(ctx)
	if _, err := s.Await(t.Context(), func(r Request) bool { return r.Turn == 1 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if text := <-got; !strings.Contains(text, "canceled") {
		t.Errorf("%s", text)
	}
	go ask(t.Context())
	if _, err := s.Await(t.Context(), func(r Request) bool { return r.Turn == 2 }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if text := <-got; !strings.Contains(text, "EOF") && !strings.Contains(text, "reset") {
		t.Errorf("%s", text)
	}
}
