package node

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memInfo reads /proc/meminfo, in kB.
func memInfo() map[string]int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	m := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			m[name], _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return m
}

func memoryMB() int64 { return memInfo()["MemTotal"] / 1024 }

// memory is what is available, in MB, of how much; false when it cannot be read.
func memory() (free, total int64, ok bool) {
	m := memInfo()
	return m["MemAvailable"] / 1024, m["MemTotal"] / 1024, m["MemTotal"] > 0 && m["MemAvailable"] > 0
}

// memoryPressure is the worse of what is available and of what the kernel says
// that programs wait for memory (PSI), where it tells.
func memoryPressure(free, total int64) string {
	level := pressure(free, total)
	text, err := os.ReadFile("/proc/pressure/memory")
	switch stall := stalled(string(text)); {
	case err != nil || level == "critical":
	case stall == "critical", level == "normal" && stall != "":
		return stall
	}
	return level
}

// psiMost is the share of the last ten seconds, in percent, that may be lost to
// waiting for memory: by some programs before it is elevated, by all before it is critical.
const psiMost = 20

// stalled grades the kernel's pressure file; "" is nothing to speak of.
func stalled(psi string) (level string) {
	for line := range strings.Lines(psi) {
		who, rest, _ := strings.Cut(line, " ")
		text, _, _ := strings.Cut(strings.TrimPrefix(rest, "avg10="), " ")
		if share, err := strconv.ParseFloat(text, 64); err != nil || share < psiMost {
			continue
		}
		switch who {
		case "full":
			return "critical"
		case "some":
			level = "elevated"
		}
	}
	return level
}

func load1() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	f, _ := strconv.ParseFloat(strings.Fields(string(b) + " 0")[0], 64)
	return f
}

// hasBattery tells a machine that may be carried away (architecture.md §6).
func hasBattery() bool {
	types, _ := filepath.Glob("/sys/class/power_supply/*/type")
	for _, t := range types {
		if b, err := os.ReadFile(t); err == nil && strings.TrimSpace(string(b)) == "Battery" {
			if scope, err := os.ReadFile(filepath.Join(filepath.Dir(t), "scope")); err == nil && strings.TrimSpace(string(scope)) == "Device" {
				continue // of a mouse or keyboard
			}
			return true
		}
	}
	return false
}
