// Package workflow is the model of a board's workflow file: it loads YAML strictly, compiles every
// expression and template, resolves extends and parents, and lints what loads but will not work.
//
// Guarantees: nothing unknown is accepted in silence (key, action, check, status, role, hook, profile,
// parameter, name in an expression: each is an error with line, column and advice, and all are told at
// once); an action whose effect comes later is named by Lint; a loaded Workflow is complete and consistent,
// and Load of its Canonical form gives the same Version. Sizes, depth and aliases are bounded.
//
// Concurrency: a loaded Workflow is immutable and may be read by many goroutines.
package workflow
