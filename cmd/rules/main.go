package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

type options struct {
	n           int
	seed        uint64
	area, id    string
	all         bool
	together    bool
	check, list bool
	mutants     string
	limit       time.Duration
}

func main() {
	var o options
	root := flag.String("root", ".", "the repository")
	flag.IntVar(&o.n, "n", 20, "how many rows to try, chosen at random")
	flag.Uint64Var(&o.seed, "seed", 0, "of the choice; 0: another each time")
	flag.StringVar(&o.area, "area", "", "only these areas, with commas")
	flag.StringVar(&o.id, "id", "", "only rows of this ID")
	flag.BoolVar(&o.all, "all", false, "every row")
	flag.BoolVar(&o.together, "together", false, "rows share one build where they can: much faster for many of them")
	flag.BoolVar(&o.check, "check", false, "only look whether the edits still fit the files")
	flag.BoolVar(&o.list, "list", false, "list the rows without an edit")
	flag.StringVar(&o.mutants, "mutants", "", "try the patches of this folder instead of rows")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "how long the tests of one row may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, os.Stdout, *root, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run tries rows and says what came of each; bad counts those that are not as they should be.
func run(ctx context.Context, w io.Writer, root string, o options) (bad int, err error) {
	if o.mutants != "" {
		return runMutants(ctx, w, root, o)
	}
	rows, err := tables(root)
	if err != nil {
		return 0, err
	}
	var can, cannot []row
	for _, r := range rows {
		area, _, _ := strings.Cut(r.id, "-")
		switch {
		case o.area != "" && !slices.Contains(strings.Split(o.area, ","), area) || o.id != "" && !strings.Contains(r.id, o.id):
		case len(r.edits) > 0:
			can = append(can, r)
		default:
			cannot = append(cannot, r)
		}
	}
	if o.list {
		for _, r := range cannot {
			fmt.Fprintf(w, "%s: %s: %s\n", r.at(), r.id, r.prose)
		}
	}
	stale := stales(root, can)
	for _, s := range stale {
		fmt.Fprintln(w, s)
	}
	bad = len(stale)
	fmt.Fprintf(w, "%d rows: %d with an edit (%d of them no longer fit), %d without\n", len(can)+len(cannot), len(can), len(stale), len(cannot))
	if o.check || o.list {
		return bad, nil
	}
	try := tryRows
	if o.together {
		try = tryTogether
	}
	tried, err := try(ctx, w, root, chosen(w, can, o), o.limit)
	return bad + tried, err
}

// runMutants is run with patches.
func runMutants(ctx context.Context, w io.Writer, root string, o options) (bad int, err error) {
	rows, err := mutants(root, o.mutants)
	if err != nil {
		return 0, err
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !strings.Contains(r.id, o.id) })
	stale := stales(root, rows)
	for _, s := range stale {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintf(w, "%d mutants, %d of them no longer fit\n", len(rows), len(stale))
	if o.check || len(stale) > 0 {
		return len(stale), nil
	}
	return plant(ctx, w, root, rows, o.limit)
}

// stales are the edits that do not fit the files any more.
func stales(root string, rows []row) (list []string) {
	for _, r := range rows {
		for _, e := range r.edits {
			text, err := os.ReadFile(root + "/" + e.path)
			if err == nil {
				_, err = e.apply(string(text))
			}
			if err != nil {
				list = append(list, fmt.Sprintf("%s: %s: %v", r.at(), r.id, err))
			}
		}
	}
	return list
}

// chosen are the rows to try: all, or some at random.
func chosen(w io.Writer, rows []row, o options) []row {
	if o.all || o.id != "" || len(rows) <= o.n {
		return rows
	}
	seed := o.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	fmt.Fprintf(w, "seed %d\n", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows[:o.n]
}

func tryRows(ctx context.Context, w io.Writer, root string, rows []row, limit time.Duration) (bad int, err error) {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(root, dir); err != nil {
		return 0, fmt.Errorf("copy the tree: %w", err)
	}
	t := &tree{root: dir}
	if err := t.findTests(); err != nil {
		return 0, fmt.Errorf("find the tests: %w", err)
	}
	for i := range rows {
		if ctx.Err() != nil {
			return bad, ctx.Err()
		}
		r := &rows[i]
		v, err := t.try(ctx, r, limit)
		if err != nil {
			return bad, err
		}
		if v.reason == "" {
			fmt.Fprintf(w, "ok   %s %s\n     %s\n     seen by %s\n", r.id, r.sentence, r.edits[0], strings.Join(v.seen, ", "))
			continue
		}
		bad++
		fmt.Fprintf(w, "BAD  %s %s (%s)\n     %s\n     %s\n", r.id, r.sentence, r.at(), r.edits[0], v.reason)
	}
	fmt.Fprintf(w, "%d rows broken on purpose, %d seen by their test\n", len(rows), len(rows)-bad)
	return bad, nil
}
