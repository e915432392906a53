package node

import (
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func memoryMB() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n >> 20)
}

// memory is what the kernel calls free, in percent of all of it.
func memory() (free, total int64, ok bool) {
	level, err := unix.SysctlUint32("kern.memorystatus_level")
	total = memoryMB()
	if err != nil || total == 0 {
		return 0, 0, false
	}
	return total * int64(level) / 100, total, true
}

func load1() float64 {
	s, err := unix.Sysctl("vm.loadavg")
	if err != nil {
		return 0
	}
	f, _ := strconv.ParseFloat(strings.Fields(strings.Trim(s, "{ }") + " 0")[0], 64)
	return f
}

func hasBattery() bool {
	out, err := exec.Command("pmset", "-g", "batt").Output()
	return err == nil && strings.Contains(string(out), "InternalBattery")
}
