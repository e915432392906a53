package launcher

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxReset bounds what is believed of the end of a limit.
const maxReset = 40 * 24 * time.Hour

// resetOf reads when a limit ends from the groups of a sign's pattern: a moment
// (ms since the epoch), or ms from now on. What is past, too far or no time is none.
func resetOf(groups map[string]string, now time.Time) (at, in int64) {
	if d, ok := parseSpan(groups["reset_in"]); ok && d > 0 && d <= maxReset {
		return 0, d.Milliseconds()
	}
	t, ok := parseMoment(groups["reset_at"])
	if !ok {
		t, ok = parseClock(groups["reset_clock"], groups["reset_zone"], now)
	}
	if !ok || !t.After(now) || t.Sub(now) > maxReset {
		return 0, 0
	}
	return t.UnixMilli(), 0
}

// parseMoment reads seconds or milliseconds since the epoch, or RFC 3339.
func parseMoment(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 && n < 1e15 {
		if n > 1e11 {
			n /= 1000
		}
		return time.UnixMilli(int64(n * 1000)), true
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

var spanPart = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)?\b`)

// parseSpan reads 30, 5m, 1h20m, "2 days 3 hours"; a bare number is seconds.
func parseSpan(s string) (d time.Duration, ok bool) {
	if d, err := time.ParseDuration(strings.TrimSpace(s)); err == nil {
		return d, true
	}
	for _, part := range spanPart.FindAllStringSubmatch(s, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil || n > 1e9 {
			return 0, false
		}
		d += time.Duration(n * float64(spanUnit(strings.ToLower(part[2]))))
		ok = true
	}
	return d, ok
}

func spanUnit(name string) time.Duration {
	switch {
	case strings.HasPrefix(name, "ms"), strings.HasPrefix(name, "milli"):
		return time.Millisecond
	case strings.HasPrefix(name, "m"):
		return time.Minute
	case strings.HasPrefix(name, "h"):
		return time.Hour
	case strings.HasPrefix(name, "d"):
		return 24 * time.Hour
	case strings.HasPrefix(name, "w"):
		return 7 * 24 * time.Hour
	}
	return time.Second
}

// justNow is how far back a clock time without a day may lie and still be today's: a
// limit that ended while its session gave up is over, it does not last till tomorrow.
const justNow = time.Hour

// clockForms are a clock time, alone or with a day. What has no day is the next such
// time, or one that has just been. Programs cut the seconds off: without them the
// minute's end is meant.
var clockForms = []struct {
	form      string
	day, year bool
}{
	{"3pm", false, false}, {"3:04pm", false, false}, {"15:04", false, false}, {"15:04:05", false, false},
	{"Jan 2 3pm", true, false}, {"Jan 2 3:04pm", true, false}, {"Jan 2 15:04", true, false},
	{"Jan 2 2006 3pm", true, true}, {"Jan 2 2006 3:04pm", true, true}, {"Jan 2 2006 15:04", true, true},
}

var (
	ordinal  = regexp.MustCompile(`(\d)(?:st|nd|rd|th)\b`)
	meridiem = regexp.MustCompile(`\s*([ap])\.?m\.?`)
)

// parseClock reads 3am, 3:04 PM, 15:04, "Jan 2nd, 2027 3:04 PM" in a zone, this machine's by default.
func parseClock(s, zone string, now time.Time) (time.Time, bool) {
	where := now.Location()
	if zone != "" {
		l, err := time.LoadLocation(strings.TrimSpace(zone))
		if err != nil {
			return time.Time{}, false
		}
		where = l
	}
	s = strings.ToLower(strings.NewReplacer(",", " ", " at ", " ").Replace(s))
	s = strings.Join(strings.Fields(meridiem.ReplaceAllString(ordinal.ReplaceAllString(s, "$1"), "${1}m")), " ")
	now = now.In(where)
	for _, f := range clockForms {
		t, err := time.ParseInLocation(f.form, s, where)
		if err != nil {
			continue
		}
		if !strings.HasSuffix(f.form, ":05") {
			t = t.Add(time.Minute)
		}
		switch {
		case f.year:
			return t, true
		case f.day:
			t = time.Date(now.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, where)
			if now.Sub(t) > maxReset { // January, said in December
				t = t.AddDate(1, 0, 0)
			}
			return t, true
		}
		t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, where)
		if !t.After(now.Add(-justNow)) {
			t = time.Date(now.Year(), now.Month(), now.Day()+1, t.Hour(), t.Minute(), t.Second(), 0, where)
		}
		return t, true
	}
	return time.Time{}, false
}
