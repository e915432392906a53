package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// readChat reads a request of OpenAI's Chat Completions API.
func readChat(_ *http.Request, body []byte) (*ask, error) {
	var q struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	a := &ask{stream: q.Stream}
	a.Model = q.Model
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, t.Function.Name)
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			a.said(text(m.Content))
		case "assistant":
			a.Earlier++
		case "tool":
			a.Output = text(m.Content)
		}
	}
	return a, nil
}

func writeChat(w http.ResponseWriter, a *ask, t Turn) {
	message, finish := object{"role": "assistant", "content": t.Say}, "stop"
	if t.Run != "" {
		args, err := json.Marshal(shellInput(a.shell(), t.Run))
		if err != nil {
			panic(err) // made above
		}
		finish = "tool_calls"
		message["tool_calls"] = []any{object{"index": 0, "id": "call_" + a.id, "type": "function", "function": object{"name": a.shell(), "arguments": string(args)}}}
	}
	usage := object{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
	part := func(kind string, choice object) object {
		choice["index"] = 0
		return object{"id": "chatcmpl-" + a.id, "object": kind, "created": 0, "model": a.Model, "choices": []any{choice}}
	}
	if !a.stream {
		v := part("chat.completion", object{"message": message, "finish_reason": finish})
		v["usage"] = usage
		answer(w, http.StatusOK, v)
		return
	}
	s := newStream(w)
	s.send("", part("chat.completion.chunk", object{"delta": message, "finish_reason": nil}))
	last := part("chat.completion.chunk", object{"delta": object{}, "finish_reason": finish})
	last["usage"] = usage
	s.send("", last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
