// Rules breaks the product as testdata/rules says, one row at a time, and shows the test that sees it.
//
// A row of testdata/rules/AREA.md is
//
//	| ID | sentence | test | breaks it |
//
// and "breaks it" holds, in backquotes, one or more edits that this program can make:
//
//	`path/file.go: s/old/new/`      old stands there exactly once
//	`path/file.go: s#old#new#2`     the second of several; any sign may stand for the slash
//
// The text is literal; \n and \t are a new line and a tab, and a backslash before the sign or itself takes it as it
// is. Whatever else stands in the cell is for people. Rows without an edit are counted, and listed with -list.
//
// For each row it edits a copy of the tree, runs exactly the named tests, and wants one of them to fail. A row whose
// text is not there any more, whose edit does not compile, or that no test sees is reported, and the exit code is 1.
//
// With -together rows whose edits stay inside functions share one build: each function stands in the copy once as it is
// and once for each row, and a file says which one is called. What cannot be shared, and what no test sees there,
// is tried alone afterwards. Many rows are then a matter of minutes.
//
// With -mutants it does so with the patches of a folder (see mutants.go): there only a failed assertion counts.
//
// Usage: rules [-n 20] [-seed N] [-area WFL,EXP] [-id WFL-06] [-all] [-together] [-check] [-list] [-mutants DIR]
package main
