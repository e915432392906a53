package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// A starter files cards whose sessions say one word into a named pipe as the
// first thing they do: the moment at which a session's process runs.
type starter struct {
	fleet *Fleet
	at    *FleetNode // files the cards and runs them; not the leader
	pipe  *os.File
	words *bufio.Reader
	who   string // the cards' profile
}

// wordBoard is the workflow of a board whose sessions say their card's id.
const wordBoard = `
version: 1
name: default
extends: default
profiles:
  word: {harness: command, args: [sh, -c, 'echo "$MUSTER_CARD" >%[1]s']}
  pane: {harness: command, surface: pane, args: [sh, -c, 'echo "$MUSTER_CARD" >%[1]s']}
`

func newStarter(ctx context.Context, f *Fleet) (*starter, error) {
	_, other, err := f.Sort(ctx)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(f.dir, "words")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("pipe for the sessions' words: %w", err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // also for writing: it has no end between two sessions
	if err != nil {
		return nil, fmt.Errorf("pipe for the sessions' words: %w", err)
	}
	s := &starter{fleet: f, at: other, pipe: pipe, words: bufio.NewReader(pipe), who: "word"}
	if _, err := f.Do(ctx, other, board.VBoardApply, board.BoardApply{Board: "default", YAML: fmt.Sprintf(wordBoard, path)}); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	return s, nil
}

// side measures from the sending of `card add` to the session's first word.
func (s *starter) side() Side {
	return Side{Name: "card add -> the session's first word, on a non-leader of three idle nodes", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		conn, err := DialHTTP(ctx, "unix", s.at.Socket())
		if err != nil {
			return Sample{}, err
		}
		defer conn.Close()
		var whole, answer, after []time.Duration
		end := time.Now().Add(window)
		for len(whole) == 0 || time.Now().Before(end) {
			sent, answered, ran, err := s.start(ctx, conn)
			if err != nil {
				return Sample{}, err
			}
			whole, answer, after = append(whole, ran.Sub(sent)), append(answer, answered.Sub(sent)), append(after, ran.Sub(answered))
		}
		sample := sampleOf(LatencyOf(whole))
		sample.Counters = map[string]float64{
			"ms from sent to answered (median)":  Milliseconds(LatencyOf(answer).P50),
			"ms from answered to word (median)":  Milliseconds(LatencyOf(after).P50),
			"starts measured in the window":      float64(len(whole)),
			"slowest ms from sent to first word": Milliseconds(sample.Latency.Max),
		}
		return sample, nil
	}}
}

// start files one card, waits for its session's word, and then until the card
// is done, so that the fleet is idle again.
func (s *starter) start(ctx context.Context, conn *HTTPConn) (sent, answered, ran time.Time, err error) {
	title, who, where := "say a word", s.who, s.at.Name
	args, err := json.Marshal(board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &who, Machine: &where}})
	if err != nil {
		return
	}
	body, err := json.Marshal(api.Do{Verb: board.VCardAdd, Args: args})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err = s.pipe.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return sent, answered, ran, fmt.Errorf("pipe for the sessions' words: %w", err)
	}
	said := make(chan error, 1)
	var word string
	go func() { // the word may come before the answer
		line, err := s.words.ReadString('\n')
		ran, word = time.Now(), strings.TrimSpace(line)
		said <- err
	}()
	sent = time.Now()
	status, text, err := conn.Post(ctx, "/v1/do", body)
	answered = time.Now()
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("card add: %d %s", status, text)
	}
	if err != nil {
		_ = s.pipe.SetReadDeadline(time.Now())
		<-said
		return sent, answered, ran, err
	}
	if err = <-said; err != nil {
		return sent, answered, ran, fmt.Errorf("no session said a word: %w", err)
	}
	var told struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err = json.Unmarshal(text, &told); err != nil || told.Data.ID != word {
		return sent, answered, ran, fmt.Errorf("card %q was filed, the session of %q said a word (%v)", told.Data.ID, word, err)
	}
	return sent, answered, ran, s.done(ctx, word)
}

func (s *starter) done(ctx context.Context, card string) error {
	for {
		c, err := api.Decode[api.CardDetail](s.at.api.Get(ctx, "/v1/cards/"+url.PathEscape(card), nil))
		if err == nil && c.Status == "done" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("card %s is %s and not done (%v)", card, c.Status, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// bareStart is the baseline of a start: the same program from fork to its first
// word, and in the same window one fdatasync and one fork/exec.
func bareStart(dir string) Side {
	word := FirstWord("sh", "-c", "echo started")
	return Side{Name: "fork/exec of the same shell -> its first word", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		sample, err := word.Run(ctx, window/2)
		if err != nil {
			return Sample{}, err
		}
		sample.Counters = map[string]float64{}
		for name, side := range map[string]Side{"ms of one fdatasync (median)": Fdatasync(dir), "ms of one fork/exec of true (median)": ForkExec()} {
			s, err := side.Run(ctx, window/4)
			if err != nil {
				return Sample{}, err
			}
			sample.Counters[name] = s.Value
		}
		return sample, nil
	}}
}

// start is P4a.
func start(ctx context.Context, env Env) ([]Result, error) {
	f, err := StartFleet(ctx, env, 3)
	if err != nil {
		return nil, err
	}
	s, err := newStarter(ctx, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	defer s.pipe.Close()
	r, err := Pair(ctx, env.Config("start", "ms", Goal{Name: "gate", AtMost: 40}, Goal{Name: "target", AtMost: 8}, Goal{Name: "moonshot", AtMost: 4}), s.side(), bareStart(env.Dir))
	return []Result{r}, errors.Join(err, f.Close())
}
