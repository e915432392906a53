package rule

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var measure = flag.Bool("measure", false, "write anew what the nasty expressions took")

// nasty is an expression of the corpus: open n times, middle, shut n times. What it took is kept beside it, as a
// record for people: what is asserted are bounds of ours, not times of a machine.
type nasty struct {
	Name         string `json:"name"`
	Open         string `json:"open"`
	Middle       string `json:"middle"`
	Shut         string `json:"shut"`
	N            int    `json:"n"`
	Microseconds int64  `json:"microseconds"`
	Kilobytes    uint64 `json:"kilobytes"`
}

func (x nasty) source() string {
	return strings.Repeat(x.Open, x.N) + x.Middle + strings.Repeat(x.Shut, x.N)
}

// Invariant 27: whatever the corpus holds is refused, or compiles with a cost within the bound and has a value or an
// error on an empty scope; as a template it is bounded by its size, too.
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
	refused := 0
	for i := range list {
		x := &list[i]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		e, err := Compile(x.source(), Any)
		if err != nil {
			refused++
			if len(err.Error()) > 600 {
				t.Errorf("%s: the refusal has %d bytes", x.Name, len(err.Error()))
			}
		} else {
			if e.Cost() > maxSteps || len(e.Reads()) > maxNodes {
				t.Errorf("%s: cost %d, %d reads", x.Name, e.Cost(), len(e.Reads()))
			}
			if v, err := e.Eval(Scope{}); err == nil && len(Format(v)) > MaxString {
				t.Errorf("%s: its value has %d bytes", x.Name, len(Format(v)))
			}
		}
		x.Microseconds = time.Since(began).Microseconds()
		runtime.ReadMemStats(&after)
		x.Kilobytes = (after.TotalAlloc - before.TotalAlloc) >> 10
		if _, err := CompileText("{{" + x.source() + "}}"); err == nil && len(x.source()) > MaxTemplate {
			t.Errorf("%s: a template of %d bytes", x.Name, len(x.source()))
		}
	}
	if refused < len(list)/3 || refused == len(list) {
		t.Errorf("%d of %d are refused: the corpus tries one side only", refused, len(list))
	}
	if *measure {
		keep(t, file, list)
	}
}

// keep writes the corpus with what each took, one a line.
func keep[T any](t *testing.T, file string, list []T) {
	t.Helper()
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
