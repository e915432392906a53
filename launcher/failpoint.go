package launcher

// point is a place at which a test kills the process that comes by. They are all
// here, and in launcher/workspace as "workspace STEP"; only a binary built with the tag failpoint has any code for them.
type point string

// Points of a node.
const (
	atBeforeWrite point = "before-write" // decided, not in the journal
	atAfterWrite  point = "after-write"  // in the journal, nothing done yet
	atFolder      point = "folder"       // a run's folder is half made
	atPrepared    point = "prepared"     // folder and workspace are made
	atSpec        point = "spec"         // the spec is there, the keeper is not
	atSpawned     point = "spawned"      // the keeper is there
	atBarred      point = "barred"       // a run is voided on disk, not yet in the journal
	atSend        point = "send"         // a report leaves
	atAnswered    point = "answered"     // it has its outcome, which is not written down
	atWord        point = "word"         // a session's word is in its folder and was not asked
	atReap        point = "reap"         // a dead keeper's tree is about to be ended
	atReaped      point = "reaped"       // it is ended, nothing is reported
	atScript      point = "script"       // a workspace's script runs
	atCleared     point = "cleared"      // a workspace is cleared, nothing is reported
	atMemory      point = "memory"       // a session has ended, no snapshot of its agent's folder is taken
	atTaken       point = "taken"        // it is taken, nothing is reported
)

// Points of a keeper.
const (
	atRecorded point = "recorded" // its session is recorded and waits at the gate
	atReleased point = "released" // its session runs, nobody was told
	atDead     point = "dead"     // nothing of its session lives, the record is not written
	atExit     point = "exit"     // the record is written, nobody was told
)
