package lease

// Do is what a node is to do next about a run.
type Do uint8

// The deeds. A decision either writes (DoRecord, DoForget) or acts, never both,
// so that a crash between the two leaves a case Next knows.
const (
	DoWait   Do = iota // nothing now; Why says for what, "" when there is nothing to wait for
	DoRecord           // Lock and Bar as told, then write Entry (and file File) in one synced transaction
	DoSpawn            // last check passed: spawn the keeper, in this same step of the launcher
	DoAdopt            // give the kept session this run's identity, then deliver its prompt
	DoKill             // ask the keeper to end the whole tree
	DoReap             // the keeper is dead: end the verified tree
	DoForget           // drop the key from the journal
)

// Decision is the next step for one run.
type Decision struct {
	Do    Do
	Entry Entry  // to write, with DoRecord
	Lock  bool   // first take the lock of the run's folder, if there is a folder; if it is held, look again instead
	Bar   bool   // then write `void` into the folder, if there is one, synced: a keeper that starts late ends
	Files bool   // file File in the same transaction as Entry
	File  Report // see Files
	Why   string // for people and logs
}

// Next decides what a node does next about one run, from its journal entry and
// what it sees. Call it again after every step until it waits, and whenever a
// fact has changed. It is the whole of M-12 and M-35 on the node's side.
func Next(e Entry, f Facts) Decision {
	e.Epoch = f.Epoch
	if f.Session == SessionOrphan {
		return Decision{Do: DoReap, Why: "its keeper is dead"}
	}
	if e.Mark != MarkVoid && f.stopCounts() {
		return void(e, "stopped or voided", nil)
	}
	if d, ok := forget(e, f); ok {
		return d
	}
	if f.carried() {
		return carried(e, f)
	}
	switch e.Mark {
	case MarkVoid:
		return answer(e, f)
	case MarkTaken:
		return launch(e, f)
	}
	return take(e, f)
}

// void writes the mark that nothing beats, and bars the folder first if the key
// was taken: from then on no keeper of it executes anything it has not checked.
func void(e Entry, why string, file *Report) Decision {
	d := Decision{Do: DoRecord, Bar: e.Mark == MarkTaken, Why: why}
	e.Mark = MarkVoid
	if file != nil {
		d.Files, d.File = true, *file
		e.Filed = e.Filed.With(*file)
	}
	d.Entry = e
	return d
}

func file(e Entry, r Report, why string) Decision {
	e.Filed, e.Done = e.Filed.With(r), e.Done&^(1<<r)
	return Decision{Do: DoRecord, Entry: e, Files: true, File: r, Why: why}
}

// carried is a run whose session is there, alive or dead: its words in order
// (launched, its own, the exit), and its end.
func carried(e Entry, f Facts) Decision {
	left := f.seen() && f.Stands == StandsNone
	if left && f.Session == SessionEnded && e.Mark == MarkNone {
		return Decision{} // over and forgotten
	}
	if !e.Filed.Has(ActLaunched) {
		return file(e, ActLaunched, "its session is there")
	}
	if f.Word == WordOpen {
		return file(e, ActWord, "its word has no outcome")
	}
	if f.Session == SessionEnded {
		switch {
		case f.Word == WordAsking:
			return Decision{Why: "its word is on its way"}
		case !e.Filed.Has(ActExited):
			return file(e, ActExited, "its session has ended")
		}
		return Decision{}
	}
	switch {
	case e.Mark == MarkVoid:
		return Decision{Do: DoKill, Why: "its order is to stop"}
	case f.Stands == StandsOwn && f.LeaveOver:
		return Decision{Do: DoKill, Why: "it has said its last word and did not leave"}
	case left:
		return Decision{Do: DoKill, Why: "its run is not current any more"}
	}
	return Decision{}
}

// answer is a voided run that no session carries: its node says so, once, and
// only after it has made sure, under the folder's lock, that none ever will.
func answer(e Entry, f Facts) Decision {
	switch {
	case e.Filed.Has(ActGone), e.Filed.Has(ActFailed), e.Filed.Has(ActRefused):
		return Decision{}
	case f.Session == SessionHeld:
		return Decision{Why: "its keeper has not shown what it did"}
	}
	d := file(e, ActGone, "voided, and nothing carries it")
	d.Lock, d.Bar = !f.Passed, !f.Passed
	return d
}

// launch is a run that was taken and that no session carries.
func launch(e Entry, f Facts) Decision {
	switch {
	case f.Passed:
		return Decision{}
	case f.Session == SessionHeld:
		return Decision{Why: "its keeper is about to start it"}
	case f.Stage == StagePreparing:
		return Decision{Why: "its workspace is being prepared"}
	case f.Stage == StageSpawned:
		return Decision{Why: "its keeper was spawned"}
	case f.Stage == StageReady:
		return lastCheck(e, f)
	}
	// Taken in an earlier life of this node, or given up in this one. It is not
	// started again: a keeper of the earlier life may still be on its way.
	r := ActFailed
	if e.Filed.Has(ActLaunched) { // its folder was lost: the leader knows it as launched
		r = ActExited
	}
	d := void(e, "its launch left nothing behind", &r)
	d.Lock = true
	return d
}

// lastCheck is the node's last look before the keeper: at its contact, the
// applied state and the journal (the mark was looked at above).
func lastCheck(e Entry, f Facts) Decision {
	switch {
	case f.seen() && f.Stands != StandsStart:
		return Decision{Why: "its order does not stand any more"}
	case !f.MayStart:
		return Decision{Why: f.Why}
	case f.Refuse != "":
		return refuse(e, f)
	case f.Kept == KeptBusy:
		return Decision{Why: "the session it takes over is in a turn"}
	case f.Kept == KeptIdle:
		return Decision{Do: DoAdopt}
	}
	return Decision{Do: DoSpawn}
}

func refuse(e Entry, f Facts) Decision {
	r := ActRefused
	return void(e, f.Refuse, &r)
}

// take is a run the journal does not know.
func take(e Entry, f Facts) Decision {
	switch {
	case !f.startCounts(), f.Session != SessionNone, f.Passed:
		return Decision{}
	case f.Epoch.Less(f.High):
		return Decision{Why: "a later claim of this card and slot was here already"}
	case !f.MayStart:
		return Decision{Why: f.Why}
	case f.Refuse != "":
		return refuse(e, f)
	}
	e.Mark = MarkTaken
	return file(e, ActTaken, "")
}

// forget drops a key whose order has left the applied state (M-37), when all
// it filed has an outcome and nothing is left to file. A late push of it is
// then stopped by the state, which has seen its claim.
func forget(e Entry, f Facts) (Decision, bool) {
	onTheWay := !f.carried() && !f.Passed && (f.Stage == StagePreparing || f.Stage == StageSpawned)
	if e.Mark == MarkNone || !f.seen() || e.Filed&^e.Done != 0 || onTheWay {
		return Decision{}, false
	}
	switch f.Stands {
	case StandsNone:
		over := f.Session == SessionNone || f.Session == SessionEnded && e.Filed.Has(ActExited)
		return Decision{Do: DoForget}, over
	case StandsOwn:
		return Decision{Do: DoForget}, f.Passed && !f.carried()
	}
	return Decision{}, false
}
