package document

import (
	"embed"
	"encoding/json"
)

//go:embed schema/*.json
var schemaFiles embed.FS

// schemas are the folder's JSON Schemas, which editors complete and check by.
func schemas() map[string][]byte {
	files := map[string][]byte{SchemaFolder + "/card.json": fieldSchema("A card: its front matter", fields, "title"), SchemaFolder + "/board.json": boardSchema()}
	for _, name := range []string{"workflow", "profiles"} {
		raw, _ := schemaFiles.ReadFile("schema/" + name + ".json") // it is embedded
		files[SchemaFolder+"/"+name+".json"] = raw
	}
	return files
}

func properties(list []field) map[string]any {
	m := map[string]any{}
	for _, f := range list {
		x := map[string]any{"description": f.what, "type": []string{"string", "number", "boolean", "null"}}
		switch f.kind {
		case intKind:
			x["type"] = []string{"integer", "null"}
		case flagKind:
			x["type"] = []string{"boolean", "null"}
		case timeKind:
			x["type"], x["format"] = []string{"string", "null"}, "date-time"
		case listKind:
			x["type"], x["items"] = []string{"array", "string", "null"}, map[string]any{"type": []string{"string", "number", "boolean"}}
		case dictKind:
			x["type"], x["additionalProperties"] = []string{"object", "null"}, map[string]any{"type": []string{"string", "number", "boolean", "null"}}
		}
		if f.own {
			x["readOnly"] = true
		}
		m[f.name] = x
	}
	return m
}

func fieldSchema(title string, list []field, required ...string) []byte {
	return schema(title, properties(list), required...)
}

func boardSchema() []byte {
	m := properties(boardFields)
	m["params"] = map[string]any{"type": []string{"object", "null"}, "description": "values of the workflow's parameters that are this board's own"}
	return schema("A board's settings", m)
}

func schema(title string, props map[string]any, required ...string) []byte {
	x := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "type": "object", "additionalProperties": false, "properties": props}
	if len(required) > 0 {
		x["required"] = required
	}
	raw, _ := json.MarshalIndent(x, "", "  ") // maps, lists and texts
	return append(raw, '\n')
}
