package api

import (
	"encoding/json"
	"net/http"
	"time"

	"muster/board"
)

// doors are those that a route is answered at.
type doors uint8

// Sets of doors.
const (
	atUser    doors = 1 << DoorUser
	atSession doors = 1 << DoorSession
	atToken   doors = 1 << DoorToken

	atPeople = atUser | atToken
	atAll    = atPeople | atSession
)

// route is one thing that may be asked. The table of them is what the doors
// answer and what the OpenAPI document says, so that neither can forget one.
type route struct {
	method, path string
	at           doors
	about        string // in a sentence

	takes asks // of a query, besides consistent for a read
	body  any  // a value of what it is sent; nil: nothing
	data  any  // a value of what its answer holds; nil: the answer is no envelope, and kind says what
	kind  string

	read  answerFunc       // of what the state lets the caller read
	asked answerFunc       // of what is decided elsewhere
	raw   http.HandlerFunc // answers by itself
}

var cardAsks = asks{"board": anyText, "status": anyText, "assignee": anyText, "machine": anyText, "label": anyText, "all": truth, "attention": truth}

// routes is the API.
func (h *handler) routes() []route {
	get, post := http.MethodGet, http.MethodPost
	info := func(*http.Request, caller) (any, Fresh, error) { return h.b.Info(), unread, nil }
	return []route{
		{get, "/v1/info", atAll, "The node that answers.", nil, nil, Info{}, "", info, nil, nil},
		{get, "/v1/status", atAll, "The fleet at a glance.", nil, nil, Status{}, "", people(h.status), nil, nil},
		{get, "/v1/nodes", atAll, "The machines.", nil, nil, []Node{}, "", people(h.nodes), nil, nil},
		{get, "/v1/nodes/{id}", atAll, "A machine, by id or name.", nil, nil, Node{}, "", people(h.node), nil, nil},
		{get, "/v1/boards", atAll, "The boards; with all, those that were put aside too.", asks{"all": truth}, nil, []Board{}, "", h.boards, nil, nil},
		{get, "/v1/boards/{slug}", atAll, "A board with its cards, oldest first.", nil, nil, BoardDetail{}, "", h.board, nil, nil},
		{get, "/v1/boards/{slug}/workflow", atAll, "The source of a board's workflow in force.", nil, nil, Workflow{}, "", h.workflow, nil, nil},
		{get, "/v1/boards/{slug}/chart", atAll, "A picture (SVG) of a board's workflow.", nil, nil, Chart{}, "", h.chart, nil, nil},
		{get, "/v1/boards/{slug}/flow", atAll, "How many cards were in which status over the last hours, and how long they stayed.", flowAsks, nil, Flow{}, "", h.flow, nil, nil},
		{get, "/v1/cards", atAll, "Cards, oldest first. A filter may be given more than once; archived cards are listed with all.", cardAsks, nil, []Card{}, "", h.cards, nil, nil},
		{get, "/v1/cards/{id}", atAll, "A card with its body, its thread and its runs.", nil, nil, CardDetail{}, "", h.card, nil, nil},
		{get, "/v1/cards/{id}/runs", atAll, "The attempts at a card.", nil, nil, []Run{}, "", h.runs, nil, nil},
		{get, "/v1/cards/{id}/why", atAll, "Why a card stands where it does.", nil, nil, Why{}, "", h.why, nil, nil},
		{get, "/v1/cards/{id}/context", atAll, "What a session is told of a card.", nil, nil, CardContext{}, "", h.context, nil, nil},
		{get, "/v1/cards/{id}/diff", atAll, "What a card has changed, from the machine that has its workspace.", asks{"stat": truth}, nil, Diff{}, "", h.diff, nil, nil},
		{get, "/v1/cards/{id}/moves", atAll, "What each event would do to a card if the caller sent it now.", nil, nil, []Move{}, "", h.moves, nil, nil},
		{get, "/v1/attention", atAll, "All that needs a person. With tag and wait: when it is not what the tag names any more.",
			asks{"board": anyText, "tag": anyText, "wait": truth}, nil, Needs{}, "", people(h.attention), nil, nil},
		{get, "/v1/inbox", atPeople | atSession, "What the caller is told of.", nil, nil, Inbox{}, "", h.inbox, nil, nil},
		{get, "/v1/sessions", atAll, "Sessions that are not gone, on all machines.", nil, nil, []Session{}, "", people(h.sessions), nil, nil},
		{get, "/v1/tokens", atAll, "Tokens, without their secrets.", nil, nil, []Token{}, "", people(h.tokens), nil, nil},
		{get, "/v1/rounds", atAll, "The last rounds of dispatch, as the leader made them.", asks{"n": number(1)}, nil, []any{}, "", people(h.rounds), nil, nil},
		{get, "/v1/dryrun", atAll, "What would start now, and what not, and why.", asks{"board": anyText}, nil, map[string]any{}, "", people(h.dryRun), nil, nil},
		{get, "/v1/counters", atAll, "What this node has counted since its start.", nil, nil, map[string]uint64{}, "", people(h.counters), nil, nil},
		{get, "/v1/runs/{id}/log", atAll, "A piece of a run's log, from a byte on; with wait, when there is more.", asks{"from": number(0), "wait": truth}, nil, LogChunk{}, "", h.logs, nil, nil},
		{get, "/v1/agents", atAll, "Agents that outlive their sessions; with all, those that have ended too.", asks{"all": truth}, nil, []Agent{}, "", people(h.agents), nil, nil},
		{get, "/v1/agents/{id...}", atAll, "An agent, by id or key.", nil, nil, AgentDetail{}, "", people(h.agent), nil, nil},
		{get, "/v1/memory", atPeople, "The files of a snapshot of an agent's folder; without a hash of its newest.", memoryAsks, nil, MemoryFiles{}, "", nil, people(h.memory), nil},
		{get, "/v1/memory/file", atPeople, "A piece of a file of a snapshot, from a byte on.", chunkAsks, nil, MemoryChunk{}, "", nil, people(h.memoryChunk), nil},
		{get, "/v1/organisations", atAll, "Organisations whose directories are told of the fleet's agents, and what waits for them.", nil, nil, []Organisation{}, "", people(h.organisations), nil, nil},
		{get, "/v1/kinds", atAll, "Kinds of events.", asks{"board": anyText}, nil, []string{}, "", h.kinds, nil, nil},
		{get, "/v1/events", atAll, "Events after a cursor: a page of them; with follow, a stream of lines (application/x-ndjson), or of server-sent events by Accept. since=now begins with the next.",
			eventAsks, nil, []Event{}, "application/x-ndjson", nil, nil, h.events},
		{get, "/v1/live", atAll, "A board as it is, then what changes, as server-sent events.", liveAsks, nil, nil, "text/event-stream", nil, nil, h.live},
		{get, "/v1/health", atAll, "How well this node can do its part, check by check.", nil, nil, Health{}, "", people(h.health), nil, nil},
		{get, "/v1/openapi.json", atAll, "This document.", nil, nil, nil, "application/json", nil, nil, h.openAPI},
		{get, "/v1/id", atAll, "An id for a request that is to be executed once.", nil, nil, "", "", nil, h.mint, nil},
		{post, "/v1/do", atAll, "Has a request executed, at most once. Under an id that is known the answer is the first one's.", nil, Do{}, json.RawMessage{}, "", nil, h.do, nil},
		{post, "/v1/token", atPeople, "Makes a token. Its secret is in this answer, and nowhere else.", nil, TokenOptions{}, TokenAnswer{}, "", nil, h.token, nil},
		{get, "/v1/backup", atPeople, "The whole state as one file, for managers; with local, as this node has it.", asks{"local": truth}, nil, nil, backupType, nil, nil, h.backup},
		{get, "/v1/peers", atPeople, "How the other nodes answer this one, now.", nil, nil, Peers{}, "", nil, h.peers, nil},
		{post, "/v1/stop", atUser, "Stops this node; with restart it starts again.", asks{"restart": truth}, struct{}{}, Info{}, "", nil, h.stop, nil},
		{post, "/v1/mirror", atUser, "Waits until a board is pushed to the git repository that this machine mirrors it to.", nil, Mirror{}, Mirror{}, "", nil, h.mirror, nil},
		{post, "/v1/gc", atUser, "Lets workspaces of this machine go that no card needs.", nil, GcOptions{}, []GcItem{}, "", nil, h.gc, nil},
		{post, "/v1/web", atUser, "Lets the caller into this node's page: an address with a code that is good once.", nil, struct{}{}, WebLogin{}, "", nil, h.web, nil},
		{get, "/v1/terminal", atPeople, "Shows a terminal of any machine: the connection is upgraded to muster-terminal/1.", termAsks, nil, nil, "application/octet-stream", nil, nil, h.terminal},
		{get, "/v1/boards/{slug}/export", atAll, "A board as a file, line by line; with live as it is in its fleet.", asks{"live": truth}, nil, nil, exportType, nil, nil, h.export},
		{post, "/v1/import", atAll, "Takes a board's file in.", nil, nil, nil, exportType, nil, nil, h.imports},
		{get, "/metrics", atAll, "Figures for Prometheus.", nil, nil, nil, "text/plain", nil, nil, h.metrics},
		{get, "/livez", atAll, "200 while this node serves.", nil, nil, Health{}, "", people(h.alive), nil, nil},
		{get, "/readyz", atAll, "200 while this node can do its part; else 503, and why.", nil, nil, Health{}, "", people(h.ready), nil, nil},
		{get, "/debug/pprof/{profile...}", atPeople, "Profiles of this process, for managers.", nil, nil, nil, "application/octet-stream", nil, nil, h.pprof},
	}
}

func (h *handler) mux() http.Handler {
	mux := http.NewServeMux()
	elsewhere := map[string]bool{}
	for _, x := range h.routes() {
		if x.at&(1<<h.door) == 0 {
			elsewhere[x.path] = x.at == atUser || x.path == "/v1/token"
			continue
		}
		fn := x.raw
		switch {
		case x.read != nil:
			fn = h.wrap(h.reader(x.takes, x.read))
		case x.asked != nil:
			fn = h.wrap(x.asked)
		}
		mux.HandleFunc(x.method+" "+x.path, fn)
	}
	mux.HandleFunc("/", h.wrap(func(r *http.Request, _ caller) (any, Fresh, error) {
		if elsewhere[r.URL.Path] {
			return nil, unread, board.Errorf(board.NotFound, "%s %s is answered only on that machine's own socket", r.Method, r.URL.Path).WithHint("run the command there, outside a session")
		}
		return nil, unread, board.Errorf(board.NotFound, "%s %s is not part of this API", r.Method, clip(r.URL.Path)).WithHint("the node may be older than the command; see: muster version")
	}))
	return mux
}

// Workflow is the source of a board's workflow.
type Workflow struct {
	Version uint64 `json:"version"`
	YAML    string `json:"yaml"`
}

// Chart is a picture of a board's workflow.
type Chart struct {
	Version uint64 `json:"version"`
	SVG     string `json:"svg"`
}

// verbs are those that come through a door, with a value of what each takes;
// nodes and the fleet have their own ways.
var verbs = map[string]any{
	board.VBoardCreate: board.BoardCreate{}, board.VBoardApply: board.BoardApply{}, board.VBoardSet: board.BoardSet{}, board.VBoardArchive: board.BoardArchive{},
	board.VCardAdd: board.CardAdd{}, board.VCardEdit: board.CardEdit{}, board.VCardPut: board.CardPut{}, board.VCardLink: board.CardLink{}, board.VCardUnlink: board.CardLink{},
	board.VEvent: board.FireEvent{}, board.VStart: board.Start{}, board.VAdopt: board.Adopt{}, board.VMove: board.Move{}, board.VForget: board.Forget{},
	board.VAgentDeclare: board.AgentDeclare{}, board.VAgentEnd: board.AgentEnd{}, board.VAgentFork: board.AgentFork{}, board.VAgentMemory: board.AgentMemory{},
	board.VOrgSet:      board.OrgSet{},
	board.VTokenRevoke: board.TokenRevoke{}, board.VPause: board.Pause{}, board.VResume: board.Pause{}, board.VDrain: board.Drain{},
	board.VNodeVote: board.NodeVote{}, board.VNodeSet: board.NodeSet{}, board.VNodeLabel: board.NodeLabel{}, board.VNodeRemove: board.NodeRemove{},
	board.VSubscribe: board.Subscribe{}, board.VInboxAck: board.InboxAck{}, board.VSend: board.Send{}, board.VWebhook: board.WebhookSet{}, board.VBarrier: struct{}{},
}

// spoken tells whether a verb may come through a door.
func spoken(verb string) bool { return verbs[verb] != nil || board.SpokenNext(verb) }

// pprofTime is how long a profile may be taken.
const pprofTime = 5 * time.Minute
