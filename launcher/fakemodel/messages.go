package fakemodel

import (
	"encoding/json"
	"net/http"
)

// readMessages reads a request of Anthropic's Messages API.
func readMessages(_ *http.Request, body []byte) (*ask, error) {
	var q struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		OutputFormat json.RawMessage `json:"output_format"`
		OutputConfig struct {
			Format json.RawMessage `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	a := &ask{stream: q.Stream, json: len(q.OutputFormat) > 0 || len(q.OutputConfig.Format) > 0}
	a.Model = q.Model
	for _, t := range q.Tools {
		a.Tools = append(a.Tools, t.Name)
	}
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			a.Earlier++
		}
		if m.Role != "user" {
			continue
		}
		var parts []struct {
			Type    string          `json:"type"`
			Text    string          `json:"text"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(m.Content, &parts) != nil {
			a.said(text(m.Content))
			continue
		}
		for _, p := range parts {
			switch p.Type {
			case "text":
				a.said(p.Text)
			case "tool_result":
				a.Output = text(p.Content)
			}
		}
	}
	return a, nil
}

// said notes what the user said.
func (a *ask) said(s string) {
	a.users = append(a.users, s)
	a.Said, a.Output = s, ""
}

func writeMessages(w http.ResponseWriter, a *ask, t Turn) {
	stop := "end_turn"
	var blocks []object
	if t.Say != "" {
		blocks = append(blocks, object{"type": "text", "text": t.Say})
	}
	call := func(name string, input object) {
		stop = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + a.id, "name": name, "input": input})
	}
	switch {
	case t.Run != "":
		call(a.shell(), shellInput(a.shell(), t.Run))
	case t.Tool != "":
		call(t.Tool, object(t.Input))
	case t.Ask != "":
		call("AskUserQuestion", object{"questions": []any{object{"question": t.Ask, "header": "Choice", "multiSelect": false, "options": []any{
			object{"label": "Yes", "description": "go on"}, object{"label": "No", "description": "stop"}}}}})
	}
	usage := object{"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	m := object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.Model, "content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if !a.stream {
		answer(w, http.StatusOK, m)
		return
	}
	s := newStream(w)
	m["content"], m["stop_reason"] = []any{}, nil
	s.send("message_start", object{"type": "message_start", "message": m})
	for i, b := range blocks {
		start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": b["text"]}
		if b["type"] == "tool_use" {
			input, err := json.Marshal(b["input"])
			if err != nil {
				panic(err) // made above
			}
			start = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(input)}
		}
		s.send("content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
		s.send("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
		s.send("content_block_stop", object{"type": "content_block_stop", "index": i})
	}
	s.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 20}})
	s.send("message_stop", object{"type": "message_stop"})
}

// shellInput is how each tool for commands takes its command.
func shellInput(tool, command string) object {
	switch tool {
	case "exec_command":
		return object{"cmd": command}
	case "shell":
		return object{"command": []string{"bash", "-c", command}}
	case "shell_command":
		return object{"command": command}
	}
	return object{"command": command, "description": "scripted command"}
}
