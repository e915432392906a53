package raftstore

import (
	"bytes"
	"fmt"

	"muster/board"
)

// decided is what came of a batch.
type decided struct {
	calls   []*call
	results []board.Result
	rest    []*call // did not fit
	data    []byte  // the log entry; nil if nothing is written
}

// decide executes calls in order on one reading, each seeing the ones before.
// When it returns the reading is over: everything is copied out.
func (x *executor) decide(term uint64, calls []*call) (*decided, error) {
	now, _ := x.clock.now()
	var d *decided
	err := x.s.View(func(v board.View) error {
		d = &decided{}
		e := entry{Term: term, Seq: v.Seq() + 1}
		over := board.NewOverlay(v)
		size := 0
		for i, c := range calls {
			env := &board.Env{Now: now, Seq: over.Seq() + 1, Nodes: x.s.cfg.Nodes, Workflows: x.s.cfg.Workflows, Term: term, Held: &x.held}
			txn, res := x.one(over, c.req, env)
			n := txn.Size()
			if !txn.Empty() && len(e.Txns) > 0 && size+n > batchBytes {
				d.rest = calls[i:]
				break
			}
			if !txn.Empty() {
				txn.Time = now
				over.Apply(&txn)
				e.Txns = append(e.Txns, txn)
				size += n
				res.Seq = env.Seq
			} else if res.Seq == 0 {
				res.Seq = over.Seq()
			}
			res.Data = bytes.Clone(res.Data)
			d.calls = append(d.calls, c)
			d.results = append(d.results, res)
			if size >= batchBytes {
				d.rest = calls[i+1:]
				break
			}
		}
		if len(e.Txns) > 0 {
			d.data = encodeEntry(&e)
		}
		return nil
	})
	return d, err
}

// one executes one request. A panic of the domain is a refusal of that request
// (invariant 22), and so is a transaction over the bounds. Like any refusal it
// is written when a slower copy might succeed later.
func (x *executor) one(v board.View, req *board.Request, env *board.Env) (board.Txn, board.Result) {
	txn, res, err := x.try(req, func() (board.Txn, board.Result) { return x.s.cfg.Exec(v, req, env) })
	if err == nil {
		return txn, res
	}
	txn, res, again := x.try(req, func() (board.Txn, board.Result) { return board.Refuse(v, req, env, err) })
	if again != nil {
		return board.Txn{}, board.Result{Err: err}
	}
	return txn, res
}

// try makes a transaction that can be stored, or says why there is none.
func (x *executor) try(req *board.Request, fn func() (board.Txn, board.Result)) (txn board.Txn, res board.Result, err *board.Error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if isDamage(p) {
			panic(p)
		}
		x.s.log.Error("request made the executor panic", "verb", req.Verb, "panic", fmt.Sprint(p))
		err = failure(board.Internal, "panic", "this request hit a defect of muster; nothing was written", "report it").Err
	}()
	txn, res = fn()
	return txn, res, bounded(&txn)
}

// bounded refuses what no node could store or what would stall all of them.
func bounded(t *board.Txn) *board.Error {
	if n := t.Size(); n > board.MaxTxnBytes {
		return board.Errorf(board.Exhausted, "this change is too large at once: %d bytes, the bound is %d", n, board.MaxTxnBytes).
			WithCheck(CheckTooLarge).WithHint("split it")
	}
	if n := len(t.Ops); n > board.MaxTxnRecords {
		return board.Errorf(board.Exhausted, "this change touches too much at once: %d records, the bound is %d", n, board.MaxTxnRecords).
			WithCheck(CheckTooLarge).WithHint("split it")
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Table < 1 || int(op.Table) > board.Tables || op.Key == "" || len(op.Key) > maxKey {
			return board.Errorf(board.Internal, "a change of table %d has a key of %d bytes", op.Table, len(op.Key)).WithCheck(CheckTooLarge)
		}
	}
	return nil
}
