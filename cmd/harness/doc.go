// Command harness brings the real agent programs that tests run, and says how a
// newer one differs.
//
//	go run ./cmd/harness install    the pinned versions, into a folder outside the repository
//	go run ./cmd/harness newest     the newest ones beside them: what changed in their options
//
// The folder is MUSTER_AGENTS, /var/cache/muster-agents for root, muster-agents in
// the user's cache folder for others. The exit code is 0, 1 when something could
// not be had or an option that a preset uses is gone, 2 for a mistake in the call.
package main
