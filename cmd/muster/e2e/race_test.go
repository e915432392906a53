//go:build race

package e2e

// Under the race detector the nodes are built with it, too.
const raced = true
