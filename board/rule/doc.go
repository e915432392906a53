// Package rule compiles and evaluates the expressions and templates of a workflow.
//
// Guarantees: an expression is checked against the documented scope when it is compiled (an unknown
// name is an error with a position and a suggestion); an absent value is nil and nil never fails
// (a member of nil is nil, comparing with nil is false, computing with nil is nil, nil is no truth,
// len(nil) is 0); there is one kind of number, never NaN or infinite; maps are visited in key order;
// an evaluation is pure, bounded in steps and sizes, and ends in a value or an error, never a panic.
//
// Concurrency: a compiled Expr or Text is immutable and may be used by many goroutines; a Scope is
// only read.
package rule
