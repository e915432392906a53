package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"muster/board"
)

var statusOf = map[board.Code]int{board.Invalid: 400, board.NotFound: 404, board.Refused: 409, board.Conflict: 409, board.Exhausted: 413,
	board.Unavailable: 503, board.UnknownOutcome: 504, board.Internal: 500}

func send(w http.ResponseWriter, data any, f Fresh, err error, id string) {
	status, body := answerOf(data, f, err, id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// answerOf is the status and the body of every answer.
func answerOf(data any, f Fresh, err error, id string) (status int, body []byte) {
	if raw, ok := data.(json.RawMessage); ok && err == nil && f.Age < 0 && json.Valid(raw) { // of a write: as the leader made it
		body = append(make([]byte, 0, len(raw)+48), `{"v":`...)
		body = strconv.AppendInt(body, Version, 10)
		if f.Index != 0 {
			body = strconv.AppendUint(append(body, `,"index":`...), f.Index, 10)
		}
		body = append(append(body, `,"data":`...), raw...)
		return http.StatusOK, append(body, "}\n"...)
	}
	env := Envelope{V: Version, Index: f.Index}
	if f.Age >= 0 && err == nil {
		ms := f.Age.Milliseconds()
		env.AgeMS = &ms
	}
	status = http.StatusOK
	if err != nil {
		env.Error = failure(err, id)
		status = cmp.Or(statusOf[env.Error.Code], http.StatusInternalServerError)
	} else if data != nil {
		b, jerr := json.Marshal(data)
		if jerr != nil {
			env.Error, status = failure(jerr, id), 500
		}
		env.Data = b
	}
	body, jerr := json.Marshal(env)
	if jerr != nil { // data is no JSON: a defect
		return answerOf(nil, unread, jerr, id)
	}
	return status, append(body, '\n')
}

func tooLarge() *board.Error {
	return board.Errorf(board.Exhausted, "the request is larger than %d MB", maxBody>>20).WithHint("keep large text in files")
}

func failure(err error, id string) *Failure {
	var e *board.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		e = tooLarge()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e = board.Errorf(board.Unavailable, "no answer in time").WithHint("see: muster status")
	case !errors.As(err, &e):
		e = board.Errorf(board.Internal, "%v", err)
	}
	f := &Failure{Error: *e}
	if e.Code == board.UnknownOutcome || e.Code == board.Unavailable {
		f.RequestID = id
	}
	return f
}
