package launcher

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"muster/board"
	"muster/board/lease"
)

var reportKinds = map[lease.Report]string{
	lease.ActTaken: board.ReportTaken, lease.ActLaunched: board.ReportLaunched, lease.ActRefused: board.ReportRefused,
	lease.ActFailed: board.ReportFailed, lease.ActExited: board.ReportExited, lease.ActGone: board.ReportGone,
}

func reportName(a lease.Report) string {
	if a == lease.ActWord {
		return "word"
	}
	return reportKinds[a]
}

// item is the message that a decision files.
func (r *Reconciler) item(n *run, d lease.Decision) *item {
	it := &item{Run: n.id, Act: d.File, Boot: BootID(), At: r.cfg.Now(), Wall: time.Now().UnixMilli()}
	if d.File == lease.ActWord {
		it.Word = n.word.req
		return it
	}
	rep := &board.Report{Kind: reportKinds[d.File], Run: n.id, Order: n.orderID()}
	it.Report = rep
	switch d.File {
	case lease.ActLaunched:
		r.describe(n, rep)
	case lease.ActRefused:
		rep.Error = d.Why
	case lease.ActFailed:
		rep.Kind, rep.Error = n.whyNot(d.Why)
	case lease.ActGone:
		if n.stop != nil {
			rep.Order = n.stop.ID
		}
	case lease.ActExited:
		rep.Session = n.told()
		if e := n.exit; e != nil {
			rep.Code, rep.Signal, rep.Error = e.Code, e.Signal, e.Error
			if rep.Means = n.means(e, rep); e.Lapsed {
				rep.Means = board.MeansLease
			}
			it.Boot, it.At, it.Wall = e.Boot, e.At, e.Wall
		}
	}
	return it
}

// meansTail is how much of a log's end is searched for what the harness's
// preset calls signs.
const meansTail = 128 << 10

// means is what a harness's preset says of an end: by its exit code, or by a
// line of its output. When the line says when a limit is over, the report says so
// too, whatever told that it is one.
func (n *run) means(e *Exit, rep *board.Report) (means string) {
	if n.spec == nil || e.Code != nil && *e.Code == 0 {
		return ""
	}
	if e.Code != nil {
		means = n.spec.Exits[strconv.FormatInt(*e.Code, 10)]
	}
	if len(n.spec.Signs) == 0 || means != "" && means != meansLimit {
		return means
	}
	tail := tailOf(n.dir, meansTail)
	for _, s := range n.spec.Signs {
		re, err := regexp.Compile("(?m)" + s.Matches)
		if err != nil || means != "" && s.Means != means {
			continue
		}
		if all := re.FindAllSubmatch(tail, -1); len(all) > 0 {
			if means = s.Means; means != meansLimit || resets(re, all[len(all)-1], rep) { // another line may say when it is over
				break
			}
		}
	}
	return means
}

const meansLimit = "rate_limit"

// resets takes the end of a limit from a line that matched: reset_at in seconds
// since the epoch, or reset_in in seconds after the end.
func resets(re *regexp.Regexp, match [][]byte, rep *board.Report) bool {
	number := func(group string) int64 {
		if i := re.SubexpIndex(group); i > 0 {
			if n, err := strconv.ParseInt(string(match[i]), 10, 64); err == nil && n > 0 && n < 1e11 {
				return n * 1000
			}
		}
		return 0
	}
	rep.ResetAt, rep.ResetIn = number("reset_at"), number("reset_in")
	return rep.ResetAt != 0 || rep.ResetIn != 0
}

func (n *run) orderID() string {
	switch {
	case n.order != nil:
		return n.order.ID
	case n.spec != nil:
		return n.spec.Order
	}
	return ""
}

// describe fills in what the fleet gets to know of a session: never its secret.
func (r *Reconciler) describe(n *run, rep *board.Report) {
	if n.spec != nil {
		rep.Workspace, rep.Session = n.spec.Dir, n.spec.SessionID
	}
	if n.link != nil {
		rep.PID = int64(n.link.PID())
	} else if n.proc != nil {
		rep.PID = int64(n.proc.PID)
	}
	s, err := ReadSecret(n.dir)
	if err != nil {
		r.log.Warn("secret cannot be read; the session cannot speak", "run", n.id, "err", err)
		return
	}
	rep.SecretHash = s.Hash()
}

// whyNot is why a launch that was taken came to nothing. A program or workspace
// that is not there is the card's failure; what happened to this node or to the
// moment is not (M-12).
func (n *run) whyNot(why string) (kind, text string) {
	switch {
	case n.failed != "" && n.full:
		return board.ReportRefused, "NOSPACE: this machine's disk is full: " + n.failed
	case n.failed != "":
		return board.ReportFailed, n.failed
	case n.exit != nil && n.exit.Refused != "":
		return board.ReportRefused, n.exit.Error
	case n.exit != nil && n.exit.Error != "":
		return board.ReportFailed, n.exit.Error
	}
	return board.ReportRefused, why
}

// request is an item as it goes to the leader, now.
func (r *Reconciler) request(it *item, retry bool) *board.Request {
	if it.Word != nil {
		w := *it.Word
		w.Retry = true // it has been asked before, perhaps
		return &w
	}
	req := &board.Request{Retry: retry, Journal: r.journal.id, Number: it.N}
	rep := *it.Report
	e := Exit{Boot: it.Boot, At: it.At, Wall: it.Wall}
	rep.Ago = e.ago(BootID(), r.cfg.Now(), time.Now()).Milliseconds()
	args, err := json.Marshal(&rep)
	if err != nil { // a Report holds nothing that cannot be marshalled
		r.log.Error("report cannot be written", "run", it.Run, "err", err)
	}
	req.Actor = board.Actor{Kind: board.ActorNode, Role: "node", Name: r.cfg.Name, Node: r.cfg.Node}
	req.Verb, req.Args = board.VReport, args
	return req
}

// filed notes what the outbox has now.
func (n *run) filed(it *item) {
	if it.Act == lease.ActWord && n.word != nil {
		n.word.st = lease.WordFiled
	}
}

// answered notes the outcome of an item.
func (n *run) answered(it *item, res board.Result, log *slog.Logger) {
	switch it.Act {
	case lease.ActLaunched:
		select {
		case <-n.launched:
		default:
			close(n.launched)
		}
	case lease.ActWord:
		if n.word != nil && n.word.req.ID == it.Word.ID {
			n.finishWord(res, log)
		}
	}
}
