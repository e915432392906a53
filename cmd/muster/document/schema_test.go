package document

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled are the folder's schemas, as an editor reads them.
func compiled(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	for name, raw := range schemas() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.AddResource(filepath.Base(name), doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	m := map[string]*jsonschema.Schema{}
	for _, name := range []string{"card", "board", "workflow", "profiles"} {
		s, err := c.Compile(name + ".json")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m[name] = s
	}
	return m
}

// held holds a YAML text against a schema.
func held(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var x any
	if err := yaml.Unmarshal(text, &x); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// WSP-04: the schemas admit what an export writes and what workflows are there, and nothing misspelt.
func TestSchemas(t *testing.T) {
	s := compiled(t)
	list, err := filepath.Glob("../../../docs/workflows/*.yaml")
	if err != nil || len(list) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, name := range append(list, "../../../board/workflow/default-workflow.yaml") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, ".test.") || strings.Contains(string(raw), "steps:") {
			continue
		}
		if err := held(t, s["workflow"], raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w, p := split(string(raw)); p != "" {
			if err := held(t, s["profiles"], []byte(p)); err != nil {
				t.Errorf("profiles of %s: %v", name, err)
			}
			if joined(w, p) != string(raw) {
				t.Errorf("%s is not put together again", name)
			}
		}
	}
	b, err := fromLines([][]byte{[]byte(`{"muster_board":1,"slug":"web","prefix":"w","label":"Web","keep":90,"params":{"a":null,"b":[1]},"workflow":"name: x\n","exported_at":0,"next_card":1,"seq":1,"fleet":"f"}`),
		[]byte(`{"card":{"id":"w-1","title":"a: b","status":"todo","created":5,"updated":0,"creator":{"kind":"person","name":"ann"},"labels":{"a":"1"},"skills":["x"],"goal":true,"max_retries":0,"start_after":7}}`)})
	if err != nil {
		t.Fatal(err)
	}
	files := b.Render()
	front := strings.Split(string(files["cards/w-1.md"]), "---\n")[1]
	for schema, text := range map[string]string{"card": front, "board": string(files[BoardFile])} {
		if err := held(t, s[schema], []byte(text)); err != nil {
			t.Errorf("%s: %v\n%s", schema, err, text)
		}
	}
	for schema, text := range map[string]string{"card": "titel: x\n", "board": "colour: red\n", "workflow": "version: 1\nname: x\nstatusses: {}\n", "profiles": "profiles: {a: {harnes: x}}\n"} {
		if held(t, s[schema], []byte(text)) == nil {
			t.Errorf("%s admits %q", schema, text)
		}
	}
}

// WSP-04: each key that a workflow's reader knows is in the schema, so that no editor calls it wrong.
func TestSchemaKnowsEveryKey(t *testing.T) {
	raw, err := schemaFiles.ReadFile("schema/workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob("../../../board/workflow/decode_*.go")
	if err != nil || len(list) < 5 {
		t.Fatalf("%v %v", list, err)
	}
	key := regexp.MustCompile(`"([a-z_]+)":\s+(?:func\(n|text\(|choice\(|into\(|skip)`)
	n := 0
	for _, file := range list {
		if strings.HasSuffix(file, "decode_harness.go") || strings.HasSuffix(file, "decode_action.go") { // free in the schema
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range key.FindAllStringSubmatch(string(src), -1) {
			n++
			if !strings.Contains(string(raw), `"`+m[1]+`": {`) {
				t.Errorf("%s knows %q; the schema does not", file, m[1])
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d keys found: the source is written otherwise now", n)
	}
}
