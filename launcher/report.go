package launcher

import (
	"encoding/json"
	"log/slog"
	"time"

	"muster/board"
	"muster/board/lease"
)

// actNote marks an item of the outbox that no decision has filed: what was seen of a
// pane, what became of a delivery. Nothing of the run waits for it.
const actNote lease.Report = 255

var reportKinds = map[lease.Report]string{
	lease.ActTaken: board.ReportTaken, lease.ActLaunched: board.ReportLaunched, lease.ActRefused: board.ReportRefused,
	lease.ActFailed: board.ReportFailed, lease.ActExited: board.ReportExited, lease.ActGone: board.ReportGone,
}

func reportName(a lease.Report) string {
	switch a {
	case lease.ActWord:
		return "word"
	case actNote:
		return "note"
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
		rep.Work, rep.Head, rep.Memory = n.left.Work, n.left.Head, n.memory
	case lease.ActExited:
		rep.Session = n.told()
		rep.Work, rep.Head, rep.Memory = n.left.Work, n.left.Head, n.memory
		if e := n.exit; e != nil {
			rep.Code, rep.Signal, rep.Error = e.Code, e.Signal, e.Error
			rep.Closed = e.Closed || n.attached() // its person ended an attached one, as one closes a pane
			n.tellMeaning(rep, e)
			rep.PeakMB = (e.Peak + 1<<20 - 1) >> 20
			it.Boot, it.At, it.Wall = e.Boot, e.At, e.Wall
			if e.Unseen {
				rep.Means = board.MeansUnseen
			}
		} else {
			rep.Means, rep.Error = board.MeansUnseen, "its folder on "+r.cfg.Name+" is lost, and its process with it"
		}
		if rep.Error == "" && n.unsaved != nil {
			rep.Error = n.unsaved.Error()
		}
	}
	return it
}

// tellMeaning says what an end means: by its record, and where that is of a keeper
// that did not say, by what the folder shows now.
func (n *run) tellMeaning(rep *board.Report, e *Exit) {
	m := e.Means
	if m == nil && n.spec != nil {
		m = meaning(n.keptDir(), n.spec, e)
	}
	if m == nil {
		return
	}
	rep.Means, rep.ResetAt, rep.ResetIn = m.Kind, m.ResetAt, m.ResetIn
	if rep.Error == "" || e.Signal != "" && !e.Stopped && !e.Hung && m.Text != "" {
		rep.Error = m.Text
	}
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
	if p, err := ReadProc(n.keptDir()); err == nil {
		rep.Pane = p.Pane
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
	req.Actor = board.Actor{Kind: board.ActorNode, Role: "node", Name: r.cfg.Name, Node: r.cfg.Node}
	var say any = it.Delivered
	if req.Verb = board.VDelivered; it.Delivered == nil {
		rep := *it.Report
		e := Exit{Boot: it.Boot, At: it.At, Wall: it.Wall}
		rep.Ago = e.ago(BootID(), r.cfg.Now(), time.Now()).Milliseconds()
		req.Verb, say = board.VReport, &rep
	}
	args, err := json.Marshal(say)
	if err != nil { // what a node says holds nothing that cannot be marshalled
		r.log.Error("report cannot be written", "run", it.Run, "err", err)
	}
	req.Args = args
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
