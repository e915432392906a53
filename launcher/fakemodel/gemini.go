package fakemodel

import (
	"encoding/json"
	"net/http"
	"strings"
)

// readGemini reads a request of Gemini's generateContent.
func readGemini(r *http.Request, body []byte) (*ask, error) {
	type part struct {
		Text     string `json:"text"`
		Response struct {
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	}
	var q struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []part `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Mime string `json:"responseMimeType"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	model, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":")
	a := &ask{stream: method == "streamGenerateContent", json: q.Config.Mime == "application/json"}
	a.Model = model
	for _, t := range q.Tools {
		for _, f := range t.Functions {
			a.Tools = append(a.Tools, f.Name)
		}
	}
	for _, c := range q.Contents {
		if c.Role == "model" {
			a.Earlier++
		}
		if c.Role != "user" {
			continue
		}
		for _, p := range c.Parts {
			switch {
			case len(p.Response.Response) > 0:
				a.Output = string(p.Response.Response)
			case p.Text != "" && !strings.HasPrefix(p.Text, "<"): // what is marked up is the program's own
				a.said(p.Text)
			}
		}
	}
	return a, nil
}

func writeGemini(w http.ResponseWriter, a *ask, t Turn) {
	part := object{"text": t.Say}
	if t.Run != "" {
		part = object{"functionCall": object{"name": a.shell(), "args": shellInput(a.shell(), t.Run)}}
	}
	v := object{"candidates": []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}}, "modelVersion": a.Model,
		"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}, "totalTokens": 100}
	if a.stream {
		newStream(w).send("", v)
		return
	}
	answer(w, http.StatusOK, v)
}
