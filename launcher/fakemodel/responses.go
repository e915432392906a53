package fakemodel

import (
	"encoding/json"
	"net/http"
	"strings"
)

// readResponses reads a request of OpenAI's Responses API.
func readResponses(_ *http.Request, body []byte) (*ask, error) {
	var q struct {
		Model  string          `json:"model"`
		Stream bool            `json:"stream"`
		Input  json.RawMessage `json:"input"`
		Tools  []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	a := &ask{stream: q.Stream}
	a.Model = q.Model
	for _, t := range q.Tools {
		if t.Name == "" {
			t.Name = t.Type
		}
		a.Tools = append(a.Tools, t.Name)
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
	}
	if json.Unmarshal(q.Input, &items) != nil {
		a.said(text(q.Input))
		return a, nil
	}
	for _, it := range items {
		switch {
		case it.Role == "assistant", it.Type == "function_call":
			a.Earlier++
		case strings.HasSuffix(it.Type, "_output"):
			a.Output = text(it.Output)
		case it.Role == "user":
			if said := text(it.Content); !strings.HasPrefix(strings.TrimSpace(said), "<") { // what is marked up is the program's own
				a.said(said)
			}
		}
	}
	return a, nil
}

func writeResponses(w http.ResponseWriter, a *ask, t Turn) {
	item := object{"type": "message", "id": "msg_" + a.id, "role": "assistant", "content": []any{object{"type": "output_text", "text": t.Say, "annotations": []any{}}}}
	if t.Run != "" {
		input := shellInput(a.shell(), t.Run)
		if t.Beyond {
			input["sandbox_permissions"], input["justification"] = "require_escalated", "May I?"
		}
		args, err := json.Marshal(input)
		if err != nil {
			panic(err) // made above
		}
		item = object{"type": "function_call", "id": "fc_" + a.id, "call_id": "call_" + a.id, "name": a.shell(), "arguments": string(args)}
	}
	item["status"] = "completed"
	response := func(status string, out []any) object {
		return object{"id": "resp_" + a.id, "object": "response", "created_at": 0, "status": status, "model": a.Model, "output": out, "error": nil, "usage": object{
			"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 20, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 120}}
	}
	if !a.stream {
		answer(w, http.StatusOK, response("completed", []any{item}))
		return
	}
	s := newStream(w)
	n := 0
	send := func(event string, v object) {
		v["type"], v["sequence_number"] = event, n
		n++
		s.send(event, v)
	}
	send("response.created", object{"response": response("in_progress", []any{})})
	begun := object{}
	for k, v := range item {
		begun[k] = v
	}
	begun["status"] = "in_progress"
	if t.Run == "" {
		begun["content"] = []any{}
	}
	send("response.output_item.added", object{"output_index": 0, "item": begun})
	if t.Run == "" {
		send("response.output_text.delta", object{"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": t.Say})
	}
	send("response.output_item.done", object{"output_index": 0, "item": item})
	send("response.completed", object{"response": response("completed", []any{item})})
}
