// Command dist builds what is given to people: for each system a tar.gz, for
// Debian packages, and the checksums of all.
//
//	go run ./cmd/dist -version v1.2.3 [-out dist]
//
// The same source, version and Go give the same bytes: names, owners and times
// in the archives are fixed (SOURCE_DATE_EPOCH, else the time of the commit).
package main
