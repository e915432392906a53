package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var updateDoc = flag.Bool("openapi.update", false, "write docs/reference/openapi.json anew")

const docFile = "../../../docs/reference/openapi.json"

// TestOpenAPIFile: the file in the repository is what a node serves.
func TestOpenAPIFile(t *testing.T) {
	doc, err := OpenAPI("1")
	if err != nil {
		t.Fatal(err)
	}
	doc = append(doc, '\n')
	if *updateDoc {
		if err := os.WriteFile(docFile, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, doc) {
		t.Errorf("%s is not what a node serves; write it with: go test ./cmd/muster/api -run OpenAPIFile -openapi.update", docFile)
	}
}

// TestOpenAPIIsWhatIsAnswered: every route of the document is answered at the
// doors it names and at no other, and every route that is answered stands in it.
func TestOpenAPIIsWhatIsAnswered(t *testing.T) {
	raw, err := OpenAPI("1")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Summary string   `json:"summary"`
			Doors   []string `json:"x-doors"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.Summary == "" || len(op.Doors) == 0 {
				t.Errorf("%s %s says nothing of itself", method, path)
			}
			for door, name := range map[Door]string{DoorUser: "user", DoorSession: "session", DoorToken: "token"} {
				want := slices.Contains(op.Doors, name)
				if got := answers(door, strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path)); got != want {
					t.Errorf("%s %s at the door %s: answered %v, the document says %v", method, path, name, got, want)
				}
			}
		}
	}
	for _, x := range (&handler{}).routes() {
		if doc.Paths[strings.ReplaceAll(x.path, "...}", "}")][strings.ToLower(x.method)].Summary != x.about {
			t.Errorf("%s %s is answered and stands not in the document", x.method, x.path)
		}
	}
}

// answers tells whether a door's own routes, and not the one for all that is not part of this API, match.
func answers(door Door, method, path string) bool {
	mux, ok := newHandler(nil, door, nil).mux().(*http.ServeMux)
	if !ok {
		return false
	}
	_, pattern := mux.Handler(httptest.NewRequest(method, path, nil))
	return pattern != "/"
}

// TestOpenAPIOfTypes: what a type says on the wire is what its schema says.
func TestOpenAPIOfTypes(t *testing.T) {
	type inner struct {
		A string `json:"a"`
	}
	type outer struct {
		inner
		Inner
		B *int           `json:"b"`
		C []byte         `json:"c,omitempty"`
		D map[string]int `json:"d"`
		E string         `json:"-"`
	}
	book := &typeBook{schemas: map[string]any{}}
	book.of(reflect.TypeFor[outer]())
	got, err := json.Marshal(book.schemas["outer"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"c":{"contentEncoding":"base64","type":"string"},"d":{"additionalProperties":{"type":"integer"},"type":"object"},"x":{"type":"boolean"}},"required":["a","b","d","x"],"type":"object"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Inner is promoted into a type of the test.
type Inner struct {
	X bool `json:"x"`
}
