// Package memory keeps the folders of agents as snapshots named by their content.
//
// Guarantees. An object is whole or not there, and is what its name says: it is
// written beside, synced and renamed, and its SHA-256 is its name. A snapshot is
// an object that lists the files of a folder; it is written after all of them. What
// has the same content is stored once. Links and special files are left out.
//
// Concurrency. A [Store] may be used from many goroutines; a folder is given to one at a time.
package memory
