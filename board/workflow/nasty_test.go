package workflow

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var measure = flag.Bool("measure", false, "write anew what the nasty files took")

// nasty is a file of the corpus: head, open n times, middle, shut n times; and what it took, kept for people.
type nasty struct {
	Name         string `json:"name"`
	Head         string `json:"head"`
	Open         string `json:"open"`
	Middle       string `json:"middle"`
	Shut         string `json:"shut"`
	N            int    `json:"n"`
	Microseconds int64  `json:"microseconds"`
	Kilobytes    uint64 `json:"kilobytes"`
}

// Invariant 27: each file of the corpus ends in a report of bounded size with places in it, and never in a panic; what
// loads is linted within the loader's limits.
func TestNastyCorpus(t *testing.T) {
	const file = "testdata/nasty.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []nasty
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		x := &list[i]
		src := x.Head + strings.Repeat(x.Open, x.N) + x.Middle + strings.Repeat(x.Shut, x.N)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		w, report := Load([]byte(src), func(string) ([]byte, error) { return nil, errors.New("there is none") })
		x.Microseconds = time.Since(began).Microseconds()
		runtime.ReadMemStats(&after)
		x.Kilobytes = (after.TotalAlloc - before.TotalAlloc) >> 10
		if (w == nil) != report.Failed() || len(report.Findings) > maxFindings {
			t.Errorf("%s: %d findings, failed %v, workflow %v", x.Name, len(report.Findings), report.Failed(), w != nil)
		}
		for _, f := range report.Findings {
			if f.Line < 1 || len(f.String()) > 2000 {
				t.Errorf("%s: a finding of %d bytes in line %d", x.Name, len(f.String()), f.Line)
			}
		}
		if w != nil && (len(w.Order) > maxStatuses || len(w.All()) > maxTransitions) {
			t.Errorf("%s loads with %d statuses and %d transitions", x.Name, len(w.Order), len(w.All()))
		}
	}
	if *measure {
		var lines []string
		for _, x := range list {
			b, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, "  "+string(b))
		}
		if err := os.WriteFile(file, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
