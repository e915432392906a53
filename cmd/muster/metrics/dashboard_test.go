package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// expressions are all queries of the dashboard and of the alerting rules.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	raw, err := os.ReadFile("../../../docs/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			list = append(list, x.Expr)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Expr string `yaml:"expr"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if raw, err = os.ReadFile("../../../docs/monitoring/alerts.yml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			list = append(list, r.Expr)
		}
	}
	return list
}

var (
	metric   = regexp.MustCompile(`\bmuster_[a-z0-9_]+`)
	grouping = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
)

// TestDashboardNamesWhatIsShown: every metric that the dashboard or an alert
// asks for is shown, and what it is grouped by is a label of one of them.
func TestDashboardNamesWhatIsShown(t *testing.T) {
	list, used := expressions(t), map[string]bool{}
	if len(list) < 25 {
		t.Fatalf("%d queries", len(list))
	}
	for _, expr := range list {
		labels := []string{"le", "instance", "job"} // of a histogram, and of every scrape
		for _, name := range metric.FindAllString(expr, -1) {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
			own, ok := Names()[name]
			if !ok {
				t.Errorf("%s: there is no %s", expr, name)
			}
			used[name] = true
			labels = append(labels, own...)
		}
		for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(g[1], ",") {
				if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
					t.Errorf("%s: no metric in it has the label %s", expr, label)
				}
			}
		}
		// What is the same on every node counts once.
		for _, name := range []string{"muster_cards", "muster_sessions", "muster_attention"} {
			if strings.Contains(expr, "sum("+name+")") {
				t.Errorf("%s: %s is the same on every node: take max by its labels first", expr, name)
			}
		}
	}
	for _, must := range []string{"muster_raft_leader", "muster_quorum", "muster_raft_lag_entries", "muster_commit_duration_seconds", "muster_apply_duration_seconds", "muster_starts_total",
		"muster_cards_waiting", "muster_sessions", "muster_cap_used", "muster_outbox_items", "muster_denials_total", "muster_alarms"} {
		if !used[must] {
			t.Errorf("%s is on no panel", must)
		}
	}
}
