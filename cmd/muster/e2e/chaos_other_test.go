//go:build !linux

package e2e

import "testing"

func TestChaos(t *testing.T) {
	t.Skip("needs linux: sessions tell each other by locks and the clock that counts sleep, ways are cut and disks filled")
}
