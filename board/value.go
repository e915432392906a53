package board

import (
	"encoding/json"
	"errors"
	"slices"
)

// text is a text's value: an empty one is absent.
func text[S ~string](v S) any {
	if v == "" {
		return nil
	}
	return string(v)
}

func texts(list []string) any {
	if len(list) == 0 {
		return nil
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func moment(ms int64) any {
	if ms == 0 {
		return nil
	}
	return seconds(ms)
}

func number(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}

func mapOrNil(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

func dictValue(m map[string]string) any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// plainValue turns a caller's JSON value into the value model of expressions.
func plainValue(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Float64(); err == nil {
			return n
		}
		return x.String()
	case []any:
		for i := range x {
			x[i] = plainValue(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = plainValue(x[k])
		}
	case []string:
		return texts(x)
	case int32:
		return int64(x)
	case uint64:
		return float64(x)
	}
	return v
}

// ruleError turns the failure of an expression into a refusal that says where.
func ruleError(what string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(Refused, "%s: %v", what, err).WithCheck("expression")
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
