// Package doctor looks at a machine and its node, running or stopped, and says
// what would lose data or stop the fleet, and what to do about it. [Look] gathers
// facts and changes nothing but a small file that it removes; [Diagnose] is pure.
// The codes of findings are stable: scripts may wait for them.
package doctor
