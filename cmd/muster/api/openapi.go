package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// OpenAPI is the document of this API (OpenAPI 3.1), made of the table of routes
// and of the types that they send and answer.
func OpenAPI(version string) ([]byte, error) {
	t := &typeBook{schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	for _, x := range (&handler{}).routes() {
		path := strings.ReplaceAll(x.path, "...}", "}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(x.method)] = t.operation(x)
	}
	t.schemas["Envelope"] = map[string]any{"type": "object", "required": []string{"v"}, "description": "Every answer: data, or an error.", "properties": map[string]any{
		"v":      map[string]any{"const": Version},
		"index":  map[string]any{"type": "integer", "description": "Seq of the state at which the answer is true"},
		"age_ms": map[string]any{"type": "integer", "description": "how old that state is; absent: not known"},
		"data":   map[string]any{}, "error": t.of(reflect.TypeFor[Failure]()),
	}}
	return json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "muster", "version": version, "description": "The API of a muster node. Any node answers for the fleet. " +
			"x-doors tells where a route is answered: at the user's socket (muster.sock, no credential: the kernel says who asks), at the sessions' socket (session.sock, a run's secret), and at the mesh's door (a token). " +
			"Every read also takes consistent=true: what is true now, through the leader."},
		"servers":    []any{map[string]any{"url": "http://muster/", "description": "over a unix socket: curl --unix-socket ~/.muster/muster.sock http://muster/v1/status"}},
		"paths":      paths,
		"components": map[string]any{"schemas": t.schemas, "securitySchemes": securitySchemes},
	}, "", " ")
}

var securitySchemes = map[string]any{
	"token": map[string]any{"type": "http", "scheme": "bearer", "description": "a token, as muster token create makes it"},
	"run":   map[string]any{"type": "apiKey", "in": "header", "name": "Authorization", "description": "Run <run>:<secret>, of a session"},
}

func (t *typeBook) operation(x route) map[string]any {
	at, who := []string{}, []any{}
	if x.at&atUser != 0 {
		at, who = append(at, "user"), append(who, map[string]any{})
	}
	if x.at&atSession != 0 {
		at, who = append(at, "session"), append(who, map[string]any{"run": []any{}})
	}
	if x.at&atToken != 0 {
		at, who = append(at, "token"), append(who, map[string]any{"token": []any{}})
	}
	ok := map[string]any{"description": "the answer"}
	content := map[string]any{}
	if x.data != nil {
		content["application/json"] = map[string]any{"schema": map[string]any{"allOf": []any{ref("Envelope"), map[string]any{"properties": map[string]any{"data": t.of(reflect.TypeOf(x.data))}}}}}
	}
	if x.kind != "" {
		content[x.kind] = map[string]any{}
	}
	ok["content"] = content
	op := map[string]any{"summary": x.about, "x-doors": at, "security": who, "parameters": parameters(x), "responses": map[string]any{
		"200":     ok,
		"default": map[string]any{"description": "what went wrong, and what to do next", "content": map[string]any{"application/json": map[string]any{"schema": ref("Envelope")}}},
	}}
	switch x.body.(type) {
	case nil:
	case Do:
		op["requestBody"] = jsonBody(t.do())
	default:
		op["requestBody"] = jsonBody(t.of(reflect.TypeOf(x.body)))
	}
	return op
}

func jsonBody(schema any) map[string]any {
	return map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

// do is the body of POST /v1/do: one shape for each verb.
func (t *typeBook) do() map[string]any {
	list := []any{}
	for _, v := range slices.Sorted(maps.Keys(verbs)) {
		list = append(list, map[string]any{"type": "object", "title": v, "required": []string{"verb"}, "properties": map[string]any{
			"verb": map[string]any{"const": v}, "args": t.of(reflect.TypeOf(verbs[v])),
			"id":    map[string]any{"type": "string", "description": "an id of GET /v1/id: under it the request is executed at most once"},
			"retry": map[string]any{"type": "boolean", "description": "true of every copy after one without an answer"},
		}})
	}
	return map[string]any{"oneOf": list}
}

func parameters(x route) []any {
	list := []any{}
	for part := range strings.SplitSeq(x.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			list = append(list, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.takes)) {
		fits := x.takes[name]
		schema := map[string]any{"type": "string"}
		switch {
		case !fits("x") && fits("true"):
			schema = map[string]any{"type": "boolean"}
		case !fits("x") && fits("1"):
			schema = map[string]any{"type": "integer"}
		}
		list = append(list, map[string]any{"name": name, "in": "query", "schema": schema})
	}
	return list
}

// typeBook describes Go types as JSON Schema; named structs each once.
type typeBook struct{ schemas map[string]any }

func ref(name string) map[string]any { return map[string]any{"$ref": "#/components/schemas/" + name} }

func (t *typeBook) of(x reflect.Type) map[string]any {
	switch x {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch x.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{t.of(x.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		if x.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": t.of(x.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": t.of(x.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		return t.structure(x)
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

func (t *typeBook) structure(x reflect.Type) map[string]any {
	props, required := map[string]any{}, []string{}
	name := x.Name()
	if name != "" && x.PkgPath() != reflect.TypeFor[Do]().PkgPath() {
		name = "args." + name // what a verb takes
	}
	if name != "" {
		if t.schemas[name] != nil {
			return ref(name)
		}
		t.schemas[name] = props // one that holds itself ends here
	}
	for _, f := range reflect.VisibleFields(x) {
		if f.Anonymous || !f.IsExported() || len(f.Index) > 1 && !embedded(x, f.Index) {
			continue
		}
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" {
			continue
		}
		tag = cmp.Or(tag, f.Name)
		props[tag] = t.of(f.Type)
		if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
			required = append(required, tag)
		}
	}
	out := map[string]any{"type": "object", "properties": props}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	if name == "" {
		return out
	}
	t.schemas[name] = out
	return ref(name)
}

// embedded tells whether JSON shows a promoted field as one of its own.
func embedded(x reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := x.Field(i)
		if !f.Anonymous || f.Tag.Get("json") != "" {
			return false
		}
		x = f.Type
	}
	return true
}

func (h *handler) openAPI(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err == nil {
		err = h.mayRead(r, &c)
	}
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	doc, err := OpenAPI(h.b.Info().Version)
	if err != nil {
		send(w, nil, unread, err, "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc)
}
