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

// memoryPressure is the kernel's own level: 1 normal, 2 warning, 4 critical;
// without one it is what is available.
func memoryPressure(free, total int64) string {
	switch level, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level"); {
	case err != nil:
	case level == 1:
		return "normal"
	case level == 2:
		return "elevated"
	case level == 4:
		return "critical"
	}
	return pressure(free, total)
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
