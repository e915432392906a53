package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// name is one metric: units are base units, a counter ends in _total.
type name struct {
	kind   prometheus.ValueType
	help   string
	labels []string
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
	histo   = prometheus.UntypedValue // told apart by who fills it
)

// names is all that a node shows besides what the Go runtime and the process say of themselves.
var names = map[string]name{
	"muster_build_info":                  {gauge, "1, labelled with what runs here.", []string{"version", "node", "fleet"}},
	"muster_start_time_seconds":          {gauge, "When this node was started, in seconds since 1970.", nil},
	"muster_raft_leader":                 {gauge, "1 on the node that leads, 0 elsewhere: its sum over the fleet is 1, or nobody leads.", nil},
	"muster_quorum":                      {gauge, "1 when this node reaches a leader that can write, else 0.", nil},
	"muster_raft_term":                   {gauge, "Raft's term here. It grows with each election.", nil},
	"muster_raft_last_index":             {gauge, "Index of the last entry in this node's log.", nil},
	"muster_raft_applied_index":          {gauge, "Index of the last entry that this node's state has looked at.", nil},
	"muster_raft_lag_entries":            {gauge, "Entries that the leader had applied at the last contact and this node has not.", nil},
	"muster_state_seq":                   {gauge, "Transactions in this node's state.", nil},
	"muster_contact_age_seconds":         {gauge, "Since the sending of the last contact that the leader answered. Absent before the first.", nil},
	"muster_commit_duration_seconds":     {histo, "On the leader: from an entry's way into the log until a majority has it on disk and the state holds it.", nil},
	"muster_apply_duration_seconds":      {histo, "Of a batch of committed entries, into this node's state.", nil},
	"muster_batches_total":               {counter, "Batches of requests that this node has executed as the leader.", nil},
	"muster_transactions_total":          {counter, "Transactions that this node has applied.", nil},
	"muster_log_writes_total":            {counter, "Appends to the log on this node's disk.", nil},
	"muster_log_syncs_total":             {counter, "Syncs of the log on this node's disk.", nil},
	"muster_log_written_bytes_total":     {counter, "Bytes that this node has written to its log.", nil},
	"muster_log_size_bytes":              {gauge, "Of the live log on this node's disk.", nil},
	"muster_entries_refused_total":       {counter, "Entries that the state has refused: of an earlier term, or out of order. They are harmless, and rare.", []string{"rule"}},
	"muster_denials_total":               {counter, "Requests and connections refused for who they are.", []string{"kind"}},
	"muster_outbox_items":                {gauge, "Reports of this node's sessions that the fleet has not taken yet.", nil},
	"muster_alarms":                      {gauge, "Alarms, as muster status shows them here.", nil},
	"muster_starts_total":                {counter, "Sessions that this node has started as the leader, on any machine.", []string{"board", "profile"}},
	"muster_voters":                      {gauge, "Machines that vote.", nil},
	"muster_cards":                       {gauge, "Cards that are not archived, by status.", []string{"board", "status"}},
	"muster_cards_waiting":               {gauge, "Cards that wait, by the check that holds them up, as of muster why.", []string{"board", "check"}},
	"muster_attention":                   {gauge, "What needs a person, by kind, as of muster attention.", []string{"board", "kind"}},
	"muster_sessions":                    {gauge, "Sessions that are not gone.", []string{"board", "node", "profile"}},
	"muster_cap_used":                    {gauge, "Places taken of a cap, by what it counts together.", []string{"board", "cap", "counts", "scope", "group"}},
	"muster_cap_max":                     {gauge, "Places of a cap. Absent where it has no limit.", []string{"board", "cap", "counts", "scope", "group"}},
	"muster_paused":                      {gauge, "1 while it starts nothing by a person's word: the fleet, a board, or a node that drains.", []string{"of", "name"}},
	"muster_webhook_failures":            {gauge, "Deliveries of a webhook that failed in a row.", []string{"board", "webhook"}},
	"muster_node_online":                 {gauge, "1 when the leader hears of the machine, else 0. Absent where nobody leads.", []string{"node"}},
	"muster_node_slots":                  {gauge, "Sessions that the machine takes at once.", []string{"node"}},
	"muster_node_load1":                  {gauge, "Load of the machine over a minute.", []string{"node"}},
	"muster_node_memory_available_bytes": {gauge, "Memory of the machine that a session could take.", []string{"node"}},
	"muster_node_disk_free_bytes":        {gauge, "Free on the disk that holds the node's data.", []string{"node"}},
	"muster_node_no_space":               {gauge, "1 when that disk is nearly full, and the machine takes nothing new.", []string{"node"}},
	"muster_node_clock_offset_seconds":   {gauge, "The machine's clock ahead of board time.", []string{"node"}},
	"muster_node_workspaces":             {gauge, "Workspaces of cards on the machine's disk.", []string{"node"}},
	"muster_node_workspaces_bytes":       {gauge, "What they take, as last measured.", []string{"node"}},
}

// Names lists every metric's name, with its labels.
func Names() map[string][]string {
	all := map[string][]string{}
	for n, x := range names {
		all[n] = x.labels
	}
	return all
}
