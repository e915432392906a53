//go:build !failpoint

package launcher

func at(point) {}

func failEnv() []string { return nil }
